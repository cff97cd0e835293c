/* client_int: declares helpers for commands that act on a run's supervisor from outside. */
#ifndef DT_RUNNER_SUPERVISOR_CLIENT_CLIENT_INT_H
#define DT_RUNNER_SUPERVISOR_CLIENT_CLIENT_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* lock_holder: finds and kills the process that holds a run's supervisor.lock on this machine.
 *
 * A supervisor may be killed at any moment: the next one continues from the store and the agents' journals.
 */

/* Returns the holder of the lock (a path), whose command line is "... supervise RUN"; 0 if there
 * is none, or none that is visible from here. */
pid_t dt_lock_holder_find(const char *lock, const char *run);
/* Sends SIGKILL; returns whether the process no longer holds the lock. Another one may hold it
 * by then. */
bool dt_lock_holder_kill(pid_t pid, const char *lock, const char *run);

/* helpers: returns a process that the run's supervisor started on this machine (an agent, a
 * rank, a bridge) and that is stopped by a signal; 0 if there is none. */
int64_t dt_helpers_find_paused(const char *run);

#endif
