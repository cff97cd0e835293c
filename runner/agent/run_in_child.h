/* run_in_child: runs a function in a child process, for work that changes the current folder and has its own
 * event loop.
 *
 * Threads  the calling process must have only one thread
 */
#ifndef DT_AGENT_RUN_IN_CHILD_H
#define DT_AGENT_RUN_IN_CHILD_H

#include <stdbool.h>

typedef void dt_child_fn(const char *folder);

/* Waits for the child. Returns true if it exited, false if it was killed or could not be
 * started. */
bool dt_agent_run_in_child(dt_child_fn *work, const char *folder);

#endif
