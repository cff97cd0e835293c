/* keeper: that no active run stays without a supervisor while somebody looks on.
 *
 * By a process of its own, `dtrun supervise --all-active`: a supervisor may take half a minute to answer, and
 * the view must not wait for it.
 */
#ifndef DT_RUNNER_TOP_KEEPER_H
#define DT_RUNNER_TOP_KEEPER_H

#include <sys/types.h>

typedef struct dt_keeper {
    pid_t child;         /* 0: none runs */
    double next_seconds; /* monotonic: not before; 0 at the start */
} dt_keeper;

/* Looks after all, every ten seconds at most. What fails is tried again. */
void dt_keeper_look(dt_keeper *keeper);

#endif
