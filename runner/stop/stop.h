/* stop: the ways of `dtrun stop` that need no run history.
 *
 * Each prints what it did, and sets the exit code: 5 where something is left, or may be.
 */
#ifndef DT_RUNNER_STOP_H
#define DT_RUNNER_STOP_H

#include "runner/cli/command.h"

/* The run whose folder `ref` names. why: what is wrong with the history, for the message, and the error
 * where no folder is of that name. now: without the grace. */
dt_status dt_stop_without_history(const char *ref, bool now, const dt_error *why, dt_call *call,
                                  dt_error *err);

/* The same of several, which all are asked before one is waited for. */
dt_status dt_stop_all_without_history(const char *const *runs, int64_t count, bool now,
                                      const dt_error *why, dt_call *call, dt_error *err);

/* On that node alone: the run that `ref` names; NULL: with --all every one, else they are listed. */
dt_status dt_stop_on_node(const char *node, const char *ref, dt_call *call, dt_error *err);

#endif
