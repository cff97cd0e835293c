/* traffic: lists the messages that one rank sends in a step, computed from the recipe; `dtrun plan` computes
 * their times.
 *
 * Stages     of a step, in the order of the passes (engine/model/model.h), L blocks, micro-step m:
 *              m S + 0            embedding
 *              m S + 1 .. L       blocks forward
 *              m S + L+1          final norm, head and loss, both ways
 *              m S + L+2 .. 2L+1  blocks backward, last first
 *              m S + 2L+2         embedding backward; S = 2L + 3
 * Messages   in the order in which the strategy launches them (engine/strategy/ddp.c, fsdp.c, which
 *            define the rules); a test compares their sums with what the strategies send
 * Left out   sums of a few numbers: loss, tokens, norm; with 'tensor' the cross entropy's numbers, and gradients of
 *            parameters that tensor ranks share
 * Ownership  the array lives in the arena
 * Units      bytes of the whole buffer, as nccl-tests counts them: each of W ranks sends (W-1)/W of
 *            it for a gather or a reduce-scatter, twice that for an all-reduce; a broadcast is sent on
 *            once by each, or W-1 times by its root
 * Nodes      of N nodes that a message connects, each sends (N-1)/N of the buffer to others, or twice that, if the
 *            communicator first sums or last gathers within nodes (engine/comm/nodes.c; NCCL's rings send the same)
 */
#ifndef DT_RECIPES_COST_TRAFFIC_H
#define DT_RECIPES_COST_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "recipes/architecture/architecture.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements of a rank's part of a unit under fsdp; parts are aligned like parameters. */
static inline int64_t dt_fsdp_part_elems(int64_t unit_elems, int64_t world_size)
{
    return (unit_elems + 16 * world_size - 1) / (16 * world_size) * 16;
}

typedef enum dt_traffic_kind {
    DT_TRAFFIC_ALL_REDUCE,
    DT_TRAFFIC_ALL_GATHER,
    DT_TRAFFIC_REDUCE_SCATTER,
    DT_TRAFFIC_BROADCAST
} dt_traffic_kind;
enum { DT_TRAFFIC_KINDS = 4 };

/* The ranks that a message connects. */
typedef enum dt_traffic_peers {
    DT_TRAFFIC_DATA,     /* those that read different samples (ddp), or divide parameters (fsdp) */
    DT_TRAFFIC_REPLICAS, /* fsdp within nodes: one rank of each node */
    DT_TRAFFIC_TENSOR    /* those that divide layers */
} dt_traffic_peers;
enum { DT_TRAFFIC_PEERS = 3 };

/* A group of ranks. */
typedef struct dt_traffic_group {
    int64_t ranks, nodes; /* of one group; every node has as many of its ranks */
    int64_t at_once;      /* groups that send at the same time, of those with ranks on a node */
} dt_traffic_group;

typedef struct dt_traffic_message {
    dt_traffic_kind kind;
    int64_t bytes;
    int64_t launched; /* launched at the start of this stage; `stages`: after the last one */
    int64_t needed;   /* stage that waits for the message; `stages`: the update */
    dt_traffic_peers peers;
} dt_traffic_message;

typedef struct dt_traffic {
    dt_traffic_message *messages;
    int64_t count, stages;
    int64_t blocks; /* L */
    dt_traffic_group groups[DT_TRAFFIC_PEERS];
    /* sums within layers: all-reduces in fp32 among tensor ranks, which wait for them */
    int64_t sum_bytes;
    dt_unit_sums *unit_sums; /* of each unit; in the arena */
    bool recomputes;         /* blocks other than the last repeat a sum in the backward pass */
} dt_traffic;

/* Returns the number of sums within layers of a stage. */
int64_t dt_traffic_sums(const dt_traffic *traffic, int64_t stage);
/* Returns the bytes that a rank sends in all messages and sums. */
double dt_traffic_sent_bytes(const dt_traffic *traffic);
/* Returns the bytes that a node sends to others for one message of each of the groups. */
double dt_traffic_across(dt_traffic_kind kind, const dt_traffic_group *group, int64_t bytes);
/* Returns the bytes that a node sends to others in all messages and sums; *sums: those of sums within layers. */
double dt_traffic_across_bytes(const dt_traffic *traffic, double *sums);

/* Lists the messages of `micro_steps` micro-steps among `world_size` ranks, `node_ranks` of them on each
 * node (0: all); none for one. vocab as for dt_memory_estimate. DT_ERR_RECIPE for dp with more than one
 * process, which has no communicator, and for buckets so small that a step has more than 131,072 messages. */
dt_status dt_traffic_make(dt_traffic *out, const dt_recipe *recipe, int64_t vocab,
                          int64_t world_size, int64_t node_ranks, int64_t micro_steps,
                          dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
