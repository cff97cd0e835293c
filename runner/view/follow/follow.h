/* follow: shows a run until it ends or the user detaches, checks its supervisor meanwhile, and reads the
 * options for that.
 *
 * Reads the store five times a second. Checks the supervisor every two seconds and replaces one that was
 * killed. Ctrl-C detaches; the run continues.
 */
#ifndef DT_RUNNER_VIEW_FOLLOW_FOLLOW_H
#define DT_RUNNER_VIEW_FOLLOW_FOLLOW_H

#include "base/json.h"
#include "runner/cli/command.h"
#include "store/store.h"

/* upkeep: checks the supervisor of a run while a command waits for the run. Starts a missing supervisor and finds
 * out why the run makes no progress, every two seconds.
 *
 * Errors  DT_ERR_IO if supervisors of the run end at once; then none is started any more and waiting is pointless
 */

#define DT_UPKEEP_BYTES 1024

typedef struct dt_upkeep {
    double looked_seconds; /* 0: not yet */
    int64_t troubles;      /* consecutive checks that found a problem */
    char message[DT_UPKEEP_BYTES];
} dt_upkeep; /* starts zeroed */

/* *news: a sentence about the run's supervisor that differs from the last one, valid until the next
 * call; else NULL. A problem is reported if two checks in a row find one. */
dt_status dt_upkeep_look(const char **news, dt_upkeep *upkeep, const dt_run *run, dt_error *err);

typedef enum dt_follow_view {
    DT_FOLLOW_AUTO, /* live on a terminal, else lines */
    DT_FOLLOW_LINES,
    DT_FOLLOW_STEPS, /* all steps on stdout: --log-steps */
    DT_FOLLOW_QUIET
} dt_follow_view;

typedef enum dt_follow_from {
    DT_FOLLOW_FROM_START, /* from the start of the attempt: launch, resume */
    DT_FOLLOW_FROM_NOW    /* status --watch */
} dt_follow_from;

/* The exit code of an ended run: its own, or one derived from its state. */
int dt_follow_exit_code(const dt_run *run);

/* Follows a run for launch, resume and status --watch, prints its summary or JSON, and sets the exit code of
 * the call. */
dt_status dt_follow_to_end(dt_store *store, const char *run, dt_follow_view view,
                           dt_follow_from from, dt_call *call, dt_error *err);

/* follow_options: defines and handles --wait, --detach and --log-steps of launch, resume and fork. */

#define DT_FOLLOW_OPTIONS                                                                   \
    {.name = "wait",                                                                        \
     .kind = DT_OPTION_FLAG,                                                                \
     .help = "print plain lines until the run ends, instead of the live view; with --json " \
             "print only the final object"},                                                \
        {.name = "log-steps",                                                               \
         .kind = DT_OPTION_FLAG,                                                            \
         .help = "print every logged step, evaluation and checkpoint as a line on stdout; " \
                 "with --json as one object each, before the final one"},                   \
    {                                                                                       \
        .name = "detach", .letter = 'd', .kind = DT_OPTION_FLAG,                            \
        .help = "print the id and return as soon as the run is supervised"                  \
    }

/* Checks the options before anything is done. DT_ERR_USAGE if they cannot be combined. */
dt_status dt_follow_options_check(const dt_call *call, dt_error *err);

/* Follows a run that was started, or with --detach prints its id and returns. */
dt_status dt_follow_as_asked(dt_store *store, const char *run, dt_call *call, dt_error *err);

/* task_end: follows a run of generate or score (runner/launch/task.h) and prints its output. */

/* Follows the run as --wait, --detach and --json ask, and sets the exit code. If the run finished,
 * *text is its output, which is printed unless a file was named for it. With --json *object is the
 * summary (new reference, printed by the caller), else NULL. */
dt_status dt_task_follow(dt_strbuf *text, json_t **object, dt_store *store, const char *run,
                         dt_call *call, dt_error *err);

#endif
