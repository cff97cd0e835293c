/* words: stores the words of command lines.
 *
 * Errors     DT_ERR_USAGE: too many words, or text that is not UTF-8
 * Ownership  words live in the arena
 */
#ifndef DT_RUNNER_CONVERT_WORDS_H
#define DT_RUNNER_CONVERT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct dt_shell_word {
    const char *text;
    int line;         /* from 1; 0: not from a script */
    const char *open; /* why only a shell knows a part of it; NULL: it is known */
    bool assigns;     /* NAME=value, with a name that is not quoted */
    bool in_path;     /* $(which NAME): the text is NAME */
} dt_shell_word;

typedef struct dt_shell_words {
    dt_shell_word *items;
    size_t count, capacity;
} dt_shell_words;

typedef struct dt_shell_command {
    dt_shell_word *words;
    size_t count, capacity;
} dt_shell_command;

dt_status dt_shell_add_word(dt_shell_command *command, const dt_shell_word *word, dt_arena *arena,
                            dt_error *err);
/* Copies the text. */
void dt_shell_add_to(dt_shell_words *words, const char *text, size_t length, int line,
                     dt_arena *arena);

/* DT_ERR_USAGE if text that will be shown and written into a recipe has control characters or is not UTF-8. */
dt_status dt_shell_check_text(const char *text, size_t length, const char *source, dt_error *err);

/* Returns the length of NAME if the word has the form NAME=..., else 0. */
size_t dt_shell_assigned(const char *word);

/* Returns an array with room for one more item, moved if needed. */
void *dt_shell_grow(void *items, size_t count, size_t *capacity, size_t bytes, dt_arena *arena);

#endif
