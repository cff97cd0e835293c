/* topology: finds which ranks of a group share a node, from what each rank reports about itself.
 *
 * Two ranks share a node if they have the same boot id and process namespace, and the same NODE_RANK
 * (set by the agent). A node is only used as such if its ranks are adjacent: for example 0 1 2 | 3 4 | 5.
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

/* Exchanged as is: every rank runs the same program. */
typedef struct dt_handshake {
    char boot[40];      /* boot id: /proc/sys/kernel/random/boot_id */
    uint64_t pid_space; /* inode of the process namespace */
    int64_t node;       /* node number NODE_RANK; -1 if unset */
    int64_t pid;
    uint64_t start_ticks;
    uint8_t nonce[DT_HANDSHAKE_NONCE_BYTES]; /* random; per communicator and rank, for proof.h */
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

#ifdef __cplusplus
}
#endif
#endif
