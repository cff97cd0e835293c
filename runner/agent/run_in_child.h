/* apart: work that changes its folder and has a loop of its own is done in a process of its own.
 *
 * Threads  of a process that has one
 */
#ifndef DT_AGENT_RUN_IN_CHILD_H
#define DT_AGENT_RUN_IN_CHILD_H

#include <stdbool.h>

typedef void dt_child_fn(const char *folder);

/* Returns when it is done, true; or was killed, or no process could be started. */
bool dt_agent_run_in_child(dt_child_fn *work, const char *folder);

#endif
