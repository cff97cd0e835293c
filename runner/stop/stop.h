/* stop: implements the parts of `dtrun stop` that need no run history.
 *
 * Each function prints what it did and sets the exit code: 5 if something is left, or may be.
 */
#ifndef DT_RUNNER_STOP_H
#define DT_RUNNER_STOP_H

#include "runner/cli/command.h"

/* Stops the run whose folder `ref` names. why: the problem of the history, which is printed, and
 * returned if no folder has that name. now: without grace period. */
dt_status dt_stop_without_history(const char *ref, bool now, const dt_error *why, dt_call *call,
                                  dt_error *err);

/* The same for several runs: all are asked before it waits for one. */
dt_status dt_stop_all_without_history(const char *const *runs, int64_t count, bool now,
                                      const dt_error *why, dt_call *call, dt_error *err);

/* Stops the run that `ref` names on that node only; NULL: with --all every run, else lists them. */
dt_status dt_stop_on_node(const char *node, const char *ref, dt_call *call, dt_error *err);

#endif
