/* topology: which ranks of a group share a node, and what each says of itself when they meet.
 *
 * Two ranks share a node where they are of the same boot of the same kernel, see the same
 * processes, and were not told otherwise (NODE_RANK, which the agent sets). A node is only used as
 * one where its ranks are neighbours: 0 1 2 | 3 4 | 5, say.
 */
#ifndef DT_ENGINE_COMM_TOPOLOGY_H
#define DT_ENGINE_COMM_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/comm/peer.h"
#include "engine/comm/shm/segment.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_comm_setup;

#define DT_HANDSHAKE_NONCE_BYTES 16

/* Goes through the rendezvous as it is: every rank runs the same program. */
typedef struct dt_handshake {
    char boot[40];      /* /proc/sys/kernel/random/boot_id */
    uint64_t pid_space; /* inode of the process namespace */
    int64_t node;       /* NODE_RANK; -1 where it is unset */
    int64_t pid;
    uint64_t start_ticks;
    uint8_t nonce[DT_HANDSHAKE_NONCE_BYTES]; /* of this communicator and rank, for what proves it */
} dt_handshake;

typedef struct dt_topology {
    dt_handshake *handshakes; /* by rank of the run */
    int64_t *first;           /* node_count + 1: node n has the members first[n] ..< first[n + 1] */
    int64_t node_count;       /* of this group */
    int64_t node;             /* this rank's */
    bool some_share;          /* in some group of the run two members are on one node */
    bool some_cross;          /* ... on several nodes */
} dt_topology;

/* All ranks of the run call it with the same `what`, once: each gives `bytes` and gets those of all,
 * by rank of the run. */
dt_status dt_topology_exchange(void *all, const void *mine, size_t bytes,
                               const struct dt_comm_setup *setup, const char *what, dt_error *err);

/* All ranks call it; setup->topology is not read. */
dt_status dt_topology_find(dt_topology *out, const struct dt_comm_setup *setup, dt_error *err);
void dt_topology_release(dt_topology *topology); /* accepts a zeroed one */

/* Members on this rank's node, and who they are. out: room for DT_SEGMENT_MEMBERS_MAX. */
int64_t dt_topology_members(const dt_topology *topology);
void dt_topology_peers(dt_peer *out, const struct dt_comm_setup *setup);

/* All ranks of the run call it. *shared on all of them where every group's members on a node have
 * mapped a segment of their own, which is then in *out; what stood in the way is logged. One member
 * on a node has none. */
dt_status dt_topology_map_segment(bool *shared, dt_segment *out, const struct dt_comm_setup *setup,
                                  dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
