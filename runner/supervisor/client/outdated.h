/* outdated: a supervisor of another build that holds a run and cannot follow it.
 *
 * One of 0.1.0 that begins its next session once a later build has migrated the history tries for ever to
 * open that, with the run's lock held and without listening to anybody. It is known by the three: it holds
 * the lock, its program is not ours, and for two seconds nobody listens. Whoever needs a supervisor then ends
 * it, which may be done to any supervisor at any moment, and starts one of this build. Later builds leave by
 * themselves (supervise.c).
 */
#ifndef DT_SUPERVISOR_OUTDATED_H
#define DT_SUPERVISOR_OUTDATED_H

#include <stdbool.h>

/* Whether there was one, and the lock is free now. */
bool dt_outdated_end(const char *run, const char *folder);

#endif
