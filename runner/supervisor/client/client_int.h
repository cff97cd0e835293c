/* client_int: supervisors as those see them who have none: who holds a run, and how that ends. */
#ifndef DT_RUNNER_SUPERVISOR_CLIENT_CLIENT_INT_H
#define DT_RUNNER_SUPERVISOR_CLIENT_CLIENT_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* lock_holder: the process that holds a run's supervisor.lock on this machine, and its end.
 *
 * Any supervisor may be ended at any moment: the next continues from the store and the agents' journals.
 */

/* lock: the path. Its command line is "... supervise RUN". 0: nobody, or nobody that can be seen from here. */
pid_t dt_lock_holder_find(const char *lock, const char *run);
/* SIGKILL; whether that process holds it no more: the next may have it by then. */
bool dt_lock_holder_kill(pid_t pid, const char *lock, const char *run);

/* helpers: a process that the run's supervisor has started on this machine (an agent, a rank, a bridge) and that is stopped by
 * a signal. 0: none. */
int64_t dt_helpers_find_paused(const char *run);

#endif
