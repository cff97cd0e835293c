/* command: describes the commands of dtrun, and what a command gets when it is called: its arguments, an
 * arena, and the flag that a signal sets.
 *
 * Adding a command:
 *   1  runner/commands/NAME.c defines `const dt_command dt_command_NAME` and its function
 *   2  declare it below and put it in the table in runner/main.c
 *   3  `dtrun help --markdown > docs/commands.md` (cli.help fails until this is done)
 *   4  tests/cli/NAME.sh tests its output, its JSON, and its messages for bad input
 * Parsing, help, manual page and completion all use the one description of its options.
 *
 * Output     results to stdout; progress, notes and errors to stderr; with --json exactly one
 *            object on stdout, whose first key is "version"
 * Errors     a command returns a status and a message that main.c prints. It sets exit_code if it
 *            succeeded but must not exit with 0 (for example because the run failed)
 */
#ifndef DT_RUNNER_CLI_COMMAND_H
#define DT_RUNNER_CLI_COMMAND_H

#include <stdbool.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "recipes/read/problems.h"
#include "runner/cli/options.h"

typedef struct dt_call {
    const dt_arguments *args;
    dt_arena *arena; /* lives as long as the call */
    bool json;
    int exit_code;         /* out; 0 at the start */
    dt_problems *problems; /* problems of the recipe that was read last (read_recipe.h) */
} dt_call;

/* What the operands of a command name: what completion offers, and whether help explains how to name runs. */
typedef enum dt_operand_kind {
    DT_OPERAND_TEXT = 0, /* or nothing */
    DT_OPERAND_RUN,      /* runs or groups */
    DT_OPERAND_FILE,     /* recipes, data */
    DT_OPERAND_COMMAND,  /* a command of dtrun */
    DT_OPERAND_SHELL,
    DT_OPERAND_WORD, /* one of the words that .operands lists, "check|repair|backup [FILE]" */
} dt_operand_kind;

/* How a command uses the history of runs: which --server and DTRUN_SERVER it accepts, and whether it restarts the
 * drivers of orphaned sweeps. */
typedef enum dt_command_runs {
    DT_RUNS_NONE = 0, /* not at all: DTRUN_SERVER changes nothing */
    DT_RUNS_REMOTE, /* only reads it: --server runs the command on another machine's server (runner/relay/) */
    DT_RUNS_LOCAL,  /* this machine's: refused while DTRUN_SERVER names a server */
    DT_RUNS_SERVED, /* this machine's, for others: DTRUN_SERVER changes nothing */
} dt_command_runs;

struct dt_command {
    const char *name;
    const char *summary;  /* an imperative of at most 60 columns, no full stop */
    const char *operands; /* "RUN", "[RUN]", "RECIPE..."; "" for none */
    dt_operand_kind takes;
    dt_command_runs runs;
    int operands_min, operands_max; /* max -1: any number */
    const dt_option *options;       /* ends with a NULL name; --json and --help are added */
    const char *notes;              /* paragraphs after the options, lines of at most 88 columns */
    bool hidden;
    bool dash_operands; /* "-x" is an operand unless it is an option */
    dt_status (*run)(dt_call *call, dt_error *err);
};

extern const dt_command dt_command_launch, dt_command_stop, dt_command_resume, dt_command_status,
    dt_command_list, dt_command_show, dt_command_logs, dt_command_metrics, dt_command_export,
    dt_command_import, dt_command_init, dt_command_chat, dt_command_checkpoints,
    dt_command_generate, dt_command_score, dt_command_doctor, dt_command_plan, dt_command_validate,
    dt_command_smoke, dt_command_schema, dt_command_serve, dt_command_supervise, dt_command_tag, dt_command_archive,
    dt_command_top, dt_command_note, dt_command_rename, dt_command_rm, dt_command_gc,
    dt_command_store, dt_command_sql, dt_command_run, dt_command_wait, dt_command_fork,
    dt_command_compare, dt_command_data, dt_command_help, dt_command_completion,
    dt_command_complete, dt_command_drive, dt_command_arbiter, dt_command_queue,
    dt_command_evaluate, dt_command_verify, dt_command_mcp;

/* All commands in the order of the help, NULL-terminated. Defined in main.c. */
extern const dt_command *const dt_commands[];

/* NULL for an unknown name. */
const dt_command *dt_command_find(const char *name);
/* The command closest to a mistyped `name`, or NULL. */
const char *dt_command_suggest(const char *name);

/* interrupt: records SIGINT, SIGTERM and SIGHUP in a flag that loops poll.
 *
 * After dt_interrupt_catch these signals no longer end the process: it can finish what must not stay
 * half-done, restore the terminal, and return. Programs that it started and waits for (base/child.h) get the
 * signal too, with the default behaviour. The flag is process-wide, because signals are.
 */

void dt_interrupt_catch(void);
bool dt_interrupt_seen(void);

#endif
