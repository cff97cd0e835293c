/* follow: watching a run until it ends or the watcher leaves.
 *
 * Reads the store some five times a second and looks every other second whether a supervisor is
 * still there (one that was killed is replaced, so that a followed run is never left alone).
 * Ctrl-C leaves: the run continues.
 */
#ifndef DT_RUNNER_VIEW_FOLLOW_H
#define DT_RUNNER_VIEW_FOLLOW_H

#include "runner/cli/command.h"
#include "store/store.h"

typedef enum dt_follow_view {
    DT_FOLLOW_AUTO, /* live on a terminal, else lines */
    DT_FOLLOW_LINES,
    DT_FOLLOW_STEPS, /* all of them on stdout: --log-steps */
    DT_FOLLOW_QUIET
} dt_follow_view;

typedef enum dt_follow_from {
    DT_FOLLOW_FROM_START, /* of the attempt: launch, resume */
    DT_FOLLOW_FROM_NOW    /* status --watch */
} dt_follow_from;

/* *out: the run as it was last seen (arena of the call). *left: the watcher left before the end. */
dt_status dt_follow(dt_run *out, bool *left, dt_store *store, const char *run, dt_follow_view view,
                    dt_follow_from from, const dt_call *call, dt_error *err);

/* After leaving, to stderr: how to come back. */
void dt_follow_say_left(const dt_run *run);

/* The exit code that stands for a run that has ended: its own, or what its state says. */
int dt_follow_exit_code(const dt_run *run);

/* What launch, resume and status --watch do once there is a run to look at: follow it, then its
 * summary or its JSON; sets the exit code of the call. */
dt_status dt_follow_to_end(dt_store *store, const char *run, dt_follow_view view,
                           dt_follow_from from, dt_call *call, dt_error *err);

#endif
