/* command_line: splits the commands of a shell script or a line into words as sh does, without running anything.
 *
 * Known      quotes, backslashes, continued lines, comments, here-documents, redirections, NAME=value and
 *            NAME=(words) before their use, export, $NAME, ${NAME}, ${NAME:-value}, "${NAME[@]}", and
 *            $(which PROGRAM)
 * Not known  everything else that begins with '$' or '`', and placeholders such as <DATA>: they are kept as written, and
 *            the word is `open`
 * Repaired   a backslash followed by blanks, and a line that begins with a flag, continue the command before; `remarks`
 *            lists this
 * Errors     DT_ERR_USAGE with source and line: an unclosed quote, text that is not UTF-8
 * Ownership  words live in the arena
 */
#ifndef DT_RUNNER_CONVERT_COMMAND_LINE_H
#define DT_RUNNER_CONVERT_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct dt_shell_word {
    const char *text;
    int line;  /* from 1; 0: not from a script */
    bool open; /* only a shell can expand a part of it */
} dt_shell_word;

typedef struct dt_shell_words {
    dt_shell_word *items;
    size_t count, capacity;
} dt_shell_words;

typedef struct dt_shell_command {
    dt_shell_word *words;
    size_t count, capacity;
    dt_shell_words redirections; /* such as "> train.log" */
    size_t variables; /* number of script variables that were defined before the command */
} dt_shell_command;

typedef struct dt_shell_variable {
    const char *name;
    dt_shell_command value; /* one word, or those of an array */
    bool exported;
} dt_shell_variable;

typedef struct dt_shell_script {
    dt_arena *arena;
    dt_shell_command *commands;
    size_t count, capacity;
    dt_shell_variable *variables;
    size_t variables_count, variables_capacity;
    /* Sentences, with their lines, about text that is read in another way than a shell reads it. */
    dt_shell_words remarks;
} dt_shell_script;

void dt_shell_init(dt_shell_script *out, dt_arena *arena);

/* Defines a variable before the script. */
dt_status dt_shell_define(dt_shell_script *script, const char *name, const char *value,
                          dt_error *err);

/* Appends the commands of the text. A variable has the value of the last assignment before its use. */
dt_status dt_shell_read(dt_shell_script *script, const char *text, size_t length,
                        const char *source, dt_error *err);

/* Appends one command of words that a shell has already split. */
dt_status dt_shell_take(dt_shell_script *script, char *const *words, size_t count, dt_error *err);

dt_status dt_shell_add_word(dt_shell_command *command, const dt_shell_word *word, dt_arena *arena,
                            dt_error *err);
/* Copies the text. */
void dt_shell_add_to(dt_shell_words *words, const char *text, size_t length, int line,
                     dt_arena *arena);

/* DT_ERR_USAGE if text that will be shown and written into a recipe has control characters or is not UTF-8. */
dt_status dt_shell_check_text(const char *text, size_t length, const char *source, dt_error *err);

/* Returns the length of NAME if the word has the form NAME=..., else 0. */
size_t dt_shell_assigned(const char *word);

#endif
