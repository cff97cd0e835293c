/* keeper: starts missing supervisors of active runs while `dtrun top` is open.
 *
 * Runs `dtrun supervise --all-active` as a separate process: a supervisor can take half a minute to respond, and
 * the view must not wait for it.
 */
#ifndef DT_RUNNER_TOP_KEEPER_H
#define DT_RUNNER_TOP_KEEPER_H

#include "base/child.h"

typedef struct dt_keeper {
    dt_child child;
    double next_seconds; /* monotonic time of the next start; 0 at first */
} dt_keeper;

/* Starts the process, at most every ten seconds. Failures are retried. */
void dt_keeper_look(dt_keeper *keeper);

#endif
