/* barrier: how the ranks of one node wait for each other, on counters in memory that they share.
 *
 * Each member has two counters, which only it raises and all may wait for. A wait spins for a few
 * microseconds and then sleeps, since ranks may share their processors with computing threads.
 *
 * Dead     while it sleeps, a waiter looks 20 times a second whether everyone that it waits for
 *          still lives and has not left; a member that fails leaves, so that all fail at once
 * Order    what a member wrote before it raised is seen by those that have waited for it
 * Errors   DT_ERR_COMM: a member is dead, has left, or did not come within timeout_seconds (of one
 *          wait: a slow collective that moves on is no error)
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

/* In the shared memory, zero at first; a cache line each. */
typedef struct dt_barrier_member {
    _Alignas(64) _Atomic uint32_t counter[DT_BARRIER_COUNTERS];
    _Atomic uint32_t sleepers; /* who wait for one of these counters */
    _Atomic uint32_t left;
} dt_barrier_member;

typedef struct dt_barrier {
    dt_barrier_member *members;      /* borrowed */
    const dt_peer *peers;            /* borrowed; who they are */
    int64_t count, index;            /* of this one */
    int64_t first_rank, rank_stride; /* of member 0, and from one to the next: for messages */
    double timeout_seconds;
} dt_barrier;

/* Raises this member's counter by one. */
void dt_barrier_raise(dt_barrier *barrier, dt_barrier_counter which);
/* Until every member's counter has reached `target`; counters wrap around. */
dt_status dt_barrier_wait(dt_barrier *barrier, dt_barrier_counter which, uint32_t target,
                          dt_error *err);
/* This member takes part no more: waits of others that it has not answered already fail. */
void dt_barrier_leave(dt_barrier *barrier);

#endif
