/* script: reads a shell script that starts one command, and refuses everything whose words only a shell knows.
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

#include "runner/convert/words.h"

typedef struct dt_script_variable {
    const char *name;
    const char *value; /* with marks around open parts (script_words.c) */
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
    size_t variables_count, variables_capacity;
    const char **reasons; /* of open parts */
    size_t reasons_count, reasons_capacity;
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
