/* helper: a program of the node that is asked something (gdb, nvidia-smi), bounded in time and in
 * what is kept of its answer.
 *
 * Ownership  start makes one that frees itself after `done` or cancel
 * Threads    the loop's
 */
#ifndef DT_RUNNER_AGENT_RANK_HELPER_H
#define DT_RUNNER_AGENT_RANK_HELPER_H

#include <stddef.h>

#include "runner/agent/agent_int.h"

/* text: what it printed, to stdout and stderr, cleaned; problem: why it was ended, or NULL. */
typedef void dt_helper_fn(void *context, const char *text, const char *problem);

/* argv[0] is looked for in PATH. DT_ERR_NOT_FOUND where this node has no such program; `done` is
 * called later, once, unless it is cancelled. */
dt_status dt_helper_start(dt_helper **out, dt_agent *agent, const char *const *argv,
                          double timeout_seconds, dt_helper_fn *done, void *context, dt_error *err);
void dt_helper_cancel(dt_helper *helper); /* accepts NULL */

#endif
