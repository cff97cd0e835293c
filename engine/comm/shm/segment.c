/* segment: memory that the ranks of one node share, and the barrier in it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/comm/comm_int.h"

/* --- the barrier */

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
    dt_barrier_member *member = &barrier->members[barrier->index];

    /* Sequentially consistent, like wait_for: either the waiter sees the new value, or we see that
     * it sleeps. */
    atomic_fetch_add(&member->counter[which], 1);
    if (atomic_load(&member->sleepers) != 0)
        futex_wake_all(&member->counter[which]);
}

void dt_barrier_leave(dt_barrier *barrier)
{
    dt_barrier_member *member = &barrier->members[barrier->index];

    atomic_store(&member->left, 1);
    for (int i = 0; i < DT_BARRIER_COUNTERS; i++)
        futex_wake_all(&member->counter[i]);
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

/* --- the memory */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

typedef struct head {
    _Alignas(64) uint8_t nonce[DT_SEGMENT_NONCE_BYTES];
} head;

/* Offset of the slots, aligned to a page. */
static size_t slots_at(int64_t count)
{
    size_t bytes = sizeof(head) + (size_t)count * sizeof(dt_barrier_member);

    return (bytes + 4095) / 4096 * 4096;
}

static size_t bytes_for(int64_t count)
{
    return slots_at(count) + 2 * (size_t)(count + 1) * DT_SEGMENT_SLOT_BYTES;
}

static dt_status map(dt_segment *out, int fd, int64_t count, dt_error *err)
{
    void *base = mmap(NULL, bytes_for(count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (base == MAP_FAILED)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "cannot map %zu bytes of shared memory: %s",
                       bytes_for(count), strerror(errno));
    *out = (dt_segment){.base = base, .bytes = bytes_for(count), .count = count};
    return DT_OK;
}

dt_status dt_segment_make(dt_segment *out, dt_segment_name *name, int *fd, int64_t count,
                          dt_error *err)
{
    dt_status st = DT_OK;
    int made, failed;

    DT_ASSERT(count >= 1 && count <= DT_SEGMENT_MEMBERS_MAX);
    memset(out, 0, sizeof(*out));
    *fd = -1;
    made = memfd_create("dtrun", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "cannot make shared memory: %s", strerror(errno));
    failed = posix_fallocate(made, 0, (off_t)bytes_for(count));
    if (failed != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "cannot reserve %zu bytes of shared memory: %s",
                 bytes_for(count), strerror(failed));
    if (fcntl(made, F_ADD_SEALS, SEALS) != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "cannot seal shared memory: %s", strerror(errno));
    DT_TRY(map(out, made, count, err));
    if (getrandom(name->nonce, sizeof(name->nonce), 0) != (ssize_t)sizeof(name->nonce))
        DT_THROW(err, DT_ERR_UNSUPPORTED, "no random bytes: %s", strerror(errno));
    memcpy(((head *)out->base)->nonce, name->nonce, sizeof(name->nonce));
    name->fd = *fd = made;
    made = -1;
out:
    if (made >= 0)
        close(made);
    if (st != DT_OK)
        dt_segment_close(out);
    return st;
}

dt_status dt_segment_open(dt_segment *out, const dt_segment_name *name, int64_t pid, int64_t count,
                          dt_error *err)
{
    dt_status st = DT_OK;
    char path[64];
    struct stat info;
    int fd;

    memset(out, 0, sizeof(*out));
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd/%" PRId64, pid, name->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "cannot open the shared memory '%s': %s", path,
                       strerror(errno));
    if (fstat(fd, &info) != 0 || info.st_size != (off_t)bytes_for(count) ||
        (fcntl(fd, F_GET_SEALS) & SEALS) != SEALS)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s' is not the shared memory of this run", path);
    DT_TRY(map(out, fd, count, err));
    if (memcmp(((head *)out->base)->nonce, name->nonce, sizeof(name->nonce)) != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s' is not the shared memory of this run", path);
out:
    close(fd);
    if (st != DT_OK)
        dt_segment_close(out);
    return st;
}

void dt_segment_close(dt_segment *segment)
{
    if (segment->bytes > 0)
        munmap(segment->base, segment->bytes);
    memset(segment, 0, sizeof(*segment));
}

dt_barrier_member *dt_segment_members(const dt_segment *segment)
{
    return (dt_barrier_member *)((char *)segment->base + sizeof(head));
}

char *dt_segment_slot(const dt_segment *segment, int parity, int64_t slot)
{
    return (char *)segment->base + slots_at(segment->count) +
           (size_t)(parity * (segment->count + 1) + slot) * DT_SEGMENT_SLOT_BYTES;
}
