/* helper: runs a program of the node (gdb, nvidia-smi) and collects its output, with limits on time and size.
 *
 * Ownership  frees itself after `done` or cancel
 * Threads    call from the loop's thread
 */
#ifndef DT_RUNNER_AGENT_RANK_HELPER_H
#define DT_RUNNER_AGENT_RANK_HELPER_H

#include <stddef.h>

#include "runner/agent/agent_int.h"

/* text: its cleaned stdout and stderr; problem: why it was killed, or NULL. */
typedef void dt_helper_fn(void *context, const char *text, const char *problem);

/* Searches argv[0] in PATH. DT_ERR_NOT_FOUND if this node has no such program; `done` is called
 * later, once, unless cancelled. */
dt_status dt_helper_start(dt_helper **out, dt_agent *agent, const char *const *argv,
                          double timeout_seconds, dt_helper_fn *done, void *context, dt_error *err);
void dt_helper_cancel(dt_helper *helper); /* accepts NULL */

#endif
