/* script: the words of command lines, and the reader of shell scripts that start one command.
 *
 * Read       comments, continued lines, quotes, NAME=literal, $NAME and ${NAME} of these, ${NAME:-literal}, export, cd,
 *            `set -e` and the like, lines that only print, and one command with redirections of its output, or
 *            "| tee FILE"
 * Refused    everything else, with its line and a reason of its own: DT_ERR_USAGE
 * Deferred   a word with a part that only a shell knows (a substitution, a pattern of file names, a variable without a
 *            value) is `open`: it is refused where its value would be needed
 * Slurm      the words of "#SBATCH" lines before the first command are collected
 * Ownership  everything lives in the arena
 */
#ifndef DT_RUNNER_CONVERT_SCRIPT_H
#define DT_RUNNER_CONVERT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"

/* words: stores the words of command lines.
 *
 * Errors     DT_ERR_USAGE: too many words, or text that is not UTF-8
 * Ownership  words live in the arena
 */

typedef struct dt_shell_word {
    const char *text;
    int line;         /* from 1; 0: not from a script */
    const char *open; /* why only a shell knows a part of it; NULL: it is known */
    bool assigns;     /* NAME=value, with a name that is not quoted */
    bool in_path;     /* $(which NAME): the text is NAME */
} dt_shell_word;

typedef struct dt_shell_words {
    dt_shell_word *items;
    size_t count;
    int64_t capacity;
} dt_shell_words;

typedef struct dt_shell_command {
    dt_shell_word *words;
    size_t count;
    int64_t capacity;
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

typedef struct dt_script_variable {
    const char *name;
    const char *value; /* with marks around open parts (words.c) */
    bool exported;
} dt_script_variable;

typedef struct dt_script {
    dt_arena *arena;
    const char *source;          /* the name of the script in messages */
    dt_shell_command command;    /* no words: there is none */
    dt_shell_words exported;     /* NAME=value, before the command */
    dt_shell_words redirections; /* such as "> train.log" */
    dt_shell_words unused;       /* lines that change nothing of the run */
    dt_shell_command sbatch;     /* words of #SBATCH lines */
    dt_shell_words activate; /* lines that prepare the environment, such as "module load cuda" */
    const char *folder;      /* of cd; NULL: none */
    dt_script_variable *variables;
    size_t variables_count;
    int64_t variables_capacity;
    const char **reasons; /* of open parts */
    size_t reasons_count;
    int64_t reasons_capacity;
} dt_script;

void dt_script_init(dt_script *out, const char *source, dt_arena *arena);
/* Defines a variable before the script. */
void dt_script_define(dt_script *script, const char *name, const char *value, bool exported);
/* Collects the words of the "#SBATCH" lines before the first command, as sbatch does. */
dt_status dt_script_read_sbatch(dt_script *script, const char *text, size_t length, dt_error *err);
dt_status dt_script_read(dt_script *script, const char *text, size_t length, dt_error *err);
/* Takes a command of words that a shell has already split. */
dt_status dt_script_take(dt_script *script, char *const *words, size_t count, dt_error *err);

/* Fails with the line and the reason of an open word; `shown` is what needs the word. */
dt_status dt_script_refuse_open(const char *source, const dt_shell_word *word, const char *shown,
                                dt_error *err);

#endif
