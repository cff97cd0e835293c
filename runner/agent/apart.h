/* apart: work that changes its folder and has a loop of its own is done in a process of its own.
 *
 * Threads  of a process that has one
 */
#ifndef DT_AGENT_APART_H
#define DT_AGENT_APART_H

#include <stdbool.h>

typedef void dt_apart_fn(const char *folder);

/* Returns when it is done, true; or was killed, or no process could be started. */
bool dt_agent_apart(dt_apart_fn *work, const char *folder);

#endif
