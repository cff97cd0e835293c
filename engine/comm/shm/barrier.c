#include "engine/comm/shm/barrier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define SPINS         2000
#define SLEEP_SECONDS 0.05

/* Wait until *word is no longer `seen`, a wake-up, or the end of SLEEP_SECONDS; can also return
 * spuriously. */
static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    struct timespec time = {0, (long)(SLEEP_SECONDS * 1e9)};

    syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void dt_barrier_raise(dt_barrier *barrier, dt_barrier_counter which)
{
    dt_barrier_member *own = &barrier->members[barrier->index];

    /* Sequentially consistent, like wait_for: either the waiter sees the new value, or we see that
     * it sleeps. */
    atomic_fetch_add(&own->counter[which], 1);
    if (atomic_load(&own->sleepers) != 0)
        futex_wake_all(&own->counter[which]);
}

void dt_barrier_leave(dt_barrier *barrier)
{
    dt_barrier_member *own = &barrier->members[barrier->index];

    atomic_store(&own->left, 1);
    for (int i = 0; i < DT_BARRIER_COUNTERS; i++)
        futex_wake_all(&own->counter[i]);
}

static bool reached(const dt_barrier_member *member, dt_barrier_counter which, uint32_t target)
{
    return (int32_t)(atomic_load(&member->counter[which]) - target) >= 0;
}

/* Fails if member `at`, which has not arrived, can no longer come. */
static dt_status check(const dt_barrier *barrier, int64_t at, double waited_seconds, dt_error *err)
{
    const dt_barrier_member *member = &barrier->members[at];
    long long rank = barrier->first_rank + at * barrier->rank_stride;

    if (atomic_load(&member->left) != 0)
        return DT_FAIL(err, DT_ERR_COMM, "rank %lld has closed the communicator or has failed",
                       rank);
    if (!dt_peer_alive(&barrier->peers[at]))
        return DT_FAIL(err, DT_ERR_COMM, "rank %lld (process %lld) is dead", rank,
                       (long long)barrier->peers[at].pid);
    if (waited_seconds > barrier->timeout_seconds)
        return DT_FAIL(err, DT_ERR_COMM, "waited %g seconds for rank %lld",
                       barrier->timeout_seconds, rank);
    return DT_OK;
}

/* Fails if any member is gone: the one we wait for may be waiting for that one. */
static dt_status check_all(const dt_barrier *barrier, double waited_seconds,
                           dt_barrier_counter which, uint32_t target, dt_error *err)
{
    for (int64_t at = 0; at < barrier->count; at++) {
        dt_error found = DT_ERROR_INIT;

        /* check again: the member may have arrived just before it left */
        if (at == barrier->index || reached(&barrier->members[at], which, target) ||
            check(barrier, at, waited_seconds, &found) == DT_OK ||
            reached(&barrier->members[at], which, target))
            continue;
        return dt_error_set(err, found.code, found.file, found.line, "%s", found.message);
    }
    return DT_OK;
}

static dt_status wait_for(dt_barrier *barrier, int64_t at, dt_barrier_counter which,
                          uint32_t target, dt_error *err)
{
    dt_barrier_member *member = &barrier->members[at];
    dt_status st = DT_OK;
    double start;

    for (int i = 0; i < SPINS; i++) {
        if (reached(member, which, target))
            return DT_OK;
        relax();
    }
    start = dt_clock_monotonic_seconds();
    atomic_fetch_add(&member->sleepers, 1);
    for (;;) {
        uint32_t seen = atomic_load(&member->counter[which]);

        if (reached(member, which, target))
            break;
        if (atomic_load(&member->left) == 0)
            futex_wait(&member->counter[which], seen);
        if (reached(member, which, target))
            break;
        DT_TRY(check_all(barrier, dt_clock_monotonic_seconds() - start, which, target, err));
    }
out:
    atomic_fetch_sub(&member->sleepers, 1);
    return st;
}

dt_status dt_barrier_wait(dt_barrier *barrier, dt_barrier_counter which, uint32_t target,
                          dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t at = 0; at < barrier->count; at++)
        if (at != barrier->index)
            DT_TRY(wait_for(barrier, at, which, target, err));
out:
    return st;
}
