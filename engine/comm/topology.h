/* place: which ranks of a run share a node, and what each says of itself when they meet.
 *
 * Two ranks share a node where they are of the same boot of the same kernel, see the same
 * processes, and were not told otherwise (NODE_RANK, which the agent sets). A node is only used as
 * one where its ranks are neighbours: 0 1 2 | 3 4 | 5, say.
 */
#ifndef DT_ENGINE_COMM_TOPOLOGY_H
#define DT_ENGINE_COMM_TOPOLOGY_H

#include <stdint.h>

#include "base/error.h"
#include "engine/comm/peer.h"
#include "engine/comm/shm/segment.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_comm_setup;

#define DT_PLACE_NONCE_BYTES 16

/* Goes through the rendezvous as it is: every rank runs the same program. */
typedef struct dt_place_card {
    char boot[40];      /* /proc/sys/kernel/random/boot_id */
    uint64_t pid_space; /* inode of the process namespace */
    int64_t node;       /* NODE_RANK; -1 where it is unset */
    int64_t pid;
    uint64_t start_ticks;
    uint8_t nonce[DT_PLACE_NONCE_BYTES]; /* of this communicator and rank, for what proves it */
} dt_place_card;

typedef struct dt_place {
    dt_place_card *cards; /* by rank */
    int64_t *first;       /* node_count + 1: node n has the ranks first[n] ..< first[n + 1] */
    int64_t node_count;
    int64_t node; /* this rank's */
} dt_place;

/* All ranks call it with the same `what`, once: each gives `bytes` and gets those of all, by rank.
 */
dt_status dt_place_swap(void *all, const void *mine, size_t bytes,
                        const struct dt_comm_setup *setup, const char *what, dt_error *err);

/* All ranks call it; setup->place is not read. */
dt_status dt_place_find(dt_place *out, const struct dt_comm_setup *setup, dt_error *err);
void dt_place_release(dt_place *place); /* accepts a zeroed one */

/* The processes of this rank's node. out: room for DT_SEGMENT_MEMBERS_MAX. */
void dt_place_peers(dt_peer *out, const dt_place *place);

/* All ranks call it. *shared on all of them where every node's ranks have mapped a segment of
 * their own, which is then in *out; what stood in the way is logged. A node of one rank has none.
 */
dt_status dt_place_share(bool *shared, dt_segment *out, const struct dt_comm_setup *setup,
                         dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
