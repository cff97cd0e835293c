/* segment: creates and maps memory that the ranks of one node share.
 *
 * Layout     a nonce, one dt_barrier_member per member, then 2 x (members + 1) slots of slot_bytes
 * How        the first member creates a memfd, publishes its number, and keeps it open until all have
 *            opened /proc/PID/fd/NUMBER. It has no name anywhere, so nothing is left behind whenever a
 *            process is killed. It is not a file in /dev/shm either, so the size of that (64 MB in a
 *            container) does not limit it. Its pages are reserved on creation and its size is sealed,
 *            so that touching it later cannot fail
 * Trust      only processes of the same user can open it (ptrace(2), PTRACE_MODE_READ); 16 random
 *            bytes, which come through the rendezvous, show that it is the right segment
 * Errors     DT_ERR_UNSUPPORTED with the reason: not available here; use another transport
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
    size_t bytes;  /* 0: a view of another segment, which is closed later */
    int64_t count; /* number of members */
} dt_segment;

/* What the first member publishes to the others. */
typedef struct dt_segment_name {
    uint8_t nonce[DT_SEGMENT_NONCE_BYTES];
    int64_t fd; /* file descriptor in the first member's process; -1: none */
} dt_segment_name;

/* Create and map a segment for `count` members; the caller closes *fd once all have opened it. */
dt_status dt_segment_make(dt_segment *out, dt_segment_name *name, int *fd, int64_t count,
                          dt_error *err);
/* Map the segment that process `pid` has created. */
dt_status dt_segment_open(dt_segment *out, const dt_segment_name *name, int64_t pid, int64_t count,
                          dt_error *err);
void dt_segment_close(dt_segment *segment); /* accepts a zeroed segment */

dt_barrier_member *dt_segment_members(const dt_segment *segment);
/* parity: 0 or 1; slot `count` is shared by all members */
char *dt_segment_slot(const dt_segment *segment, int parity, int64_t slot);

#endif
