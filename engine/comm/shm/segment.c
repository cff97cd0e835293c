#include "engine/comm/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

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
