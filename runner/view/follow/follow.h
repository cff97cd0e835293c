/* follow: shows a run until it ends or the user detaches.
 *
 * Reads the store five times a second. Checks the supervisor every two seconds and replaces one that was
 * killed. Ctrl-C detaches; the run continues.
 */
#ifndef DT_RUNNER_VIEW_FOLLOW_H
#define DT_RUNNER_VIEW_FOLLOW_H

#include "runner/cli/command.h"
#include "store/store.h"

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

/* *out: the run as last seen (arena of the call). *left: the user detached before the end. */
dt_status dt_follow(dt_run *out, bool *left, dt_store *store, const char *run, dt_follow_view view,
                    dt_follow_from from, const dt_call *call, dt_error *err);

/* Prints to stderr how to follow the run again. */
void dt_follow_say_left(const dt_run *run);

/* The exit code of an ended run: its own, or one derived from its state. */
int dt_follow_exit_code(const dt_run *run);

/* Follows a run for launch, resume and status --watch, prints its summary or JSON, and sets the exit code of
 * the call. */
dt_status dt_follow_to_end(dt_store *store, const char *run, dt_follow_view view,
                           dt_follow_from from, dt_call *call, dt_error *err);

#endif
