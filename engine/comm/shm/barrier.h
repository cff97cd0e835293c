/* barrier: synchronizes the ranks of one node by counters in shared memory.
 *
 * Each member has two counters, which only it raises and all can wait for. A wait spins for a few
 * microseconds and then sleeps, since ranks may share their processors with computing threads.
 *
 * Dead     while it sleeps, a waiter checks 20 times a second that all members live and have not left;
 *          a member that fails leaves, so that all fail at once
 * Order    what a member wrote before it raised is visible to those that have waited for it
 * Errors   DT_ERR_COMM: a member is dead, has left, or did not come within timeout_seconds (of one
 *          wait: a slow collective that makes progress does not time out)
 */
#ifndef DT_ENGINE_COMM_SHM_BARRIER_H
#define DT_ENGINE_COMM_SHM_BARRIER_H

#include <stdatomic.h>

#include "base/error.h"
#include "engine/comm/peer.h"

typedef enum dt_barrier_counter {
    DT_BARRIER_GIVEN,
    DT_BARRIER_SUMMED,
    DT_BARRIER_COUNTERS
} dt_barrier_counter;

/* In shared memory, initially zero; one cache line each. */
typedef struct dt_barrier_member {
    _Alignas(64) _Atomic uint32_t counter[DT_BARRIER_COUNTERS];
    _Atomic uint32_t sleepers; /* number of waiters for one of these counters */
    _Atomic uint32_t left;
} dt_barrier_member;

typedef struct dt_barrier {
    dt_barrier_member *members; /* counters of all members, borrowed */
    const dt_peer *peers;       /* processes of all members, borrowed */
    int64_t count, index;       /* number of members; index of this member */
    /* rank of member 0, and distance between members: for messages */
    int64_t first_rank, rank_stride;
    double timeout_seconds;
} dt_barrier;

/* Raise this member's counter by one. */
void dt_barrier_raise(dt_barrier *barrier, dt_barrier_counter which);
/* Wait until every member's counter has reached `target`; counters wrap around. */
dt_status dt_barrier_wait(dt_barrier *barrier, dt_barrier_counter which, uint32_t target,
                          dt_error *err);
/* Leave the barrier: waits for counters that this member has not raised yet fail. */
void dt_barrier_leave(dt_barrier *barrier);

#endif
