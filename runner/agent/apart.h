/* apart: work that changes its folder and has a loop of its own is done in a process of its own.
 *
 * Threads  of a process that has one
 */
#ifndef DT_AGENT_APART_H
#define DT_AGENT_APART_H

typedef void dt_apart_fn(const char *folder);

/* Returns when it is done, or died; nothing where no process can be started. */
void dt_agent_apart(dt_apart_fn *work, const char *folder);

#endif
