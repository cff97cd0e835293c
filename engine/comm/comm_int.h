/* comm_int: declares what the transports share: processes of this machine, shared memory and its barrier,
 * which ranks share a node, and the functions that open each transport. */
#ifndef DT_ENGINE_COMM_COMM_INT_H
#define DT_ENGINE_COMM_COMM_INT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* peer: identifies another process of this machine by number and start time, so that a reused
 * process number is not mistaken for it. */

typedef struct dt_peer {
    int64_t pid;
    uint64_t start_ticks; /* start time of the process in ticks since boot */
} dt_peer;

dt_status dt_peer_self(dt_peer *out, dt_error *err);
/* False once it has ended, even before it is reaped. A stopped process is alive. */
bool dt_peer_alive(const dt_peer *peer);

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

/* topology: finds which ranks of a group share a node, from what each rank reports about itself.
 *
 * Two ranks share a node if they have the same boot id and process namespace, and the same NODE_RANK
 * (set by the agent). A node is only used as such if its ranks are adjacent: for example 0 1 2 | 3 4 | 5.
 */

struct dt_comm_setup;

#define DT_HANDSHAKE_NONCE_BYTES 16

/* Exchanged as is: every rank runs the same program. */
typedef struct dt_handshake {
    char boot[40];      /* boot id: /proc/sys/kernel/random/boot_id */
    uint64_t pid_space; /* inode of the process namespace */
    int64_t node;       /* node number NODE_RANK; -1 if unset */
    int64_t pid;
    uint64_t start_ticks;
    uint8_t nonce[DT_HANDSHAKE_NONCE_BYTES]; /* random; per communicator and rank, for gloo.c */
} dt_handshake;

typedef struct dt_topology {
    dt_handshake *handshakes; /* handshake of each rank of the run */
    int64_t *first;           /* node_count + 1: node n has the members first[n] ..< first[n + 1] */
    int64_t node_count;       /* number of nodes of this group */
    int64_t node;             /* node of this rank */
    bool some_share;          /* some group of the run has two members on one node */
    bool some_cross;          /* some group of the run spans several nodes */
} dt_topology;

/* Collective over the run: all ranks call it once with the same `what`; each contributes `bytes`
 * and gets those of all, by rank of the run. */
dt_status dt_topology_exchange(void *all, const void *mine, size_t bytes,
                               const struct dt_comm_setup *setup, const char *what, dt_error *err);

/* All ranks call it; setup->topology is not read. */
dt_status dt_topology_find(dt_topology *out, const struct dt_comm_setup *setup, dt_error *err);
void dt_topology_release(dt_topology *topology); /* accepts a zeroed topology */

/* The number of members on this rank's node, and their processes. out: DT_SEGMENT_MEMBERS_MAX
 * elements. */
int64_t dt_topology_members(const dt_topology *topology);
void dt_topology_peers(dt_peer *out, const struct dt_comm_setup *setup);

/* Collective over the run. *shared is true on all ranks if in every group the members on each node
 * have mapped a segment, returned in *out; otherwise the reason is logged. A single member on a
 * node needs none. */
dt_status dt_topology_map_segment(bool *shared, dt_segment *out, const struct dt_comm_setup *setup,
                                  dt_error *err);

/* Arguments for opening a communicator, on one rank. */
typedef struct dt_comm_setup {
    struct dt_events *events;
    const char *name;
    dt_group group;
    double timeout_seconds;
    const dt_topology *topology;
} dt_comm_setup;

/* In the functions below, `out` is zeroed except rank and world_size, which count the ranks that
 * the communicator connects: the group, those of one node, or one of each node. */
dt_status dt_comm_open_self(dt_comm *out);

/* Takes the segment of this rank's node, and zeroes *segment. */
dt_status dt_comm_open_shm(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                           dt_error *err);

/* Connect ranks[0 ..< world_size] of the run; the caller is ranks[rank]. All ranks of the run call
 * it, each with ranks that include itself: the rendezvous is global. */
dt_status dt_comm_open_gloo(dt_comm *out, const dt_comm_setup *setup, const int64_t *ranks,
                            dt_error *err);

/* Open shm within the nodes and Gloo between them. Takes the segment of this rank's node. */
dt_status dt_comm_open_nodes(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                             dt_error *err);

/* Make the collectives of `comm` publish what they wait for (engine/channel/activity.h). `name`
 * must live as long as the process. */
dt_status dt_comm_trace(dt_comm *comm, const char *name, dt_error *err);

/* Bytes that each rank sends in an all-reduce of `bytes`: every share except its own, twice. */
static inline int64_t dt_comm_all_reduce_bytes(int64_t world_size, int64_t bytes)
{
    return 2 * (world_size - 1) * bytes / world_size;
}

#ifdef __cplusplus
}
#endif

#endif
