/* segment: memory that the ranks of one node share.
 *
 * Layout     a nonce, one dt_barrier_member per member, then 2 x (members + 1) slots of slot_bytes
 * How        the first member makes a memfd, says its number, and keeps it open until all have
 *            opened /proc/PID/fd/NUMBER. It has no name anywhere: whoever is killed, and whenever,
 *            nothing is left. It is no file of /dev/shm either, whose size (64 MB in a container)
 *            says nothing about it. Its pages are reserved when it is made and its size is sealed,
 *            so that touching it later cannot fail
 * Trust      only processes of the same user can open it (ptrace(2), PTRACE_MODE_READ); that it is
 *            the one that was meant is shown by 16 random bytes, which come by the rendezvous
 * Errors     DT_ERR_UNSUPPORTED: it is unavailable here, and why; another transport will do
 */
#ifndef DT_ENGINE_COMM_SHM_SEGMENT_H
#define DT_ENGINE_COMM_SHM_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/comm/shm/barrier.h"

#define DT_SEGMENT_SLOT_BYTES  ((size_t)512 << 10)
#define DT_SEGMENT_MEMBERS_MAX 256
#define DT_SEGMENT_NONCE_BYTES 16

typedef struct dt_segment {
    void *base;
    size_t bytes;  /* 0: seen through another one, which is closed later */
    int64_t count; /* of members */
} dt_segment;

/* What the first member says to the others. */
typedef struct dt_segment_name {
    uint8_t nonce[DT_SEGMENT_NONCE_BYTES];
    int64_t fd; /* in its process; -1: it has made none */
} dt_segment_name;

/* Makes and maps one for `count` members; *fd is the caller's to close once all have opened it. */
dt_status dt_segment_make(dt_segment *out, dt_segment_name *name, int *fd, int64_t count,
                          dt_error *err);
/* Maps the one that process `pid` has made. */
dt_status dt_segment_open(dt_segment *out, const dt_segment_name *name, int64_t pid, int64_t count,
                          dt_error *err);
void dt_segment_close(dt_segment *segment); /* accepts a zeroed one */

dt_barrier_member *dt_segment_members(const dt_segment *segment);
/* parity: 0 or 1; slot `count` is the members' common one */
char *dt_segment_slot(const dt_segment *segment, int parity, int64_t slot);

#endif
