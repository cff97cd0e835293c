/* lock_holder: the process that holds a run's supervisor.lock on this machine, and its end.
 *
 * Any supervisor may be ended at any moment: the next continues from the store and the agents' journals.
 */
#ifndef DT_SUPERVISOR_LOCK_HOLDER_H
#define DT_SUPERVISOR_LOCK_HOLDER_H

#include <stdbool.h>
#include <sys/types.h>

/* lock: the path. Its command line is "... supervise RUN". 0: nobody, or nobody that can be seen from here. */
pid_t dt_lock_holder_find(const char *lock, const char *run);
/* Nobody holds it, or there is none; also on a read-only file system. */
bool dt_lock_holder_is_free(const char *lock);
/* SIGKILL; whether the lock is free now. */
bool dt_lock_holder_kill(pid_t pid, const char *lock);

#endif
