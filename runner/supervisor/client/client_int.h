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

/* outdated: a supervisor of another build that holds a run and cannot follow it.
 *
 * One of 0.1.0 that begins its next session once a later build has migrated the history tries for ever to
 * open that, with the run's lock held and without listening to anybody. It is known by the three: it holds
 * the lock, its program is not ours, and for two seconds nobody listens. Whoever needs a supervisor then ends
 * it, which may be done to any supervisor at any moment, and starts one of this build. Later builds leave by
 * themselves (supervise.c).
 */

/* Whether there was one, and the lock is free now. */
bool dt_outdated_end(const char *run, const char *folder);

#endif
