/* comm: groups of ranks, the collectives between the ranks of a group, as a struct of functions per
 * transport, and the sums that these use.
 *
 *   self   one rank: collectives only copy
 *   shm    ranks of one node, through shared memory
 *   gloo   CPU ranks over TCP (shim in C++; every exception is caught at its border)
 *   nodes  several ranks on several nodes: shm within a node, gloo between nodes
 *   nccl   GPUs, one per rank (nccl.h); otherwise staged, through host memory (open.c)
 *
 * A communicator connects all ranks of a run, or those along one axis of its mesh (mesh.h): rank and
 * world_size are those within that group.
 *
 * The transport is chosen when a communicator is opened (comm_int.h). If the ranks of a node cannot share
 * memory, all of them use Gloo, and the log says why. DTRUN_INTERFACE_ADDRESS is the interface that
 * Gloo's sockets bind to; DTRUN_RUN_SECRET authenticates each of its connections (gloo/gloo.c describes
 * which attacks this prevents).
 *
 * All ranks of a communicator call the same collectives in the same order. Sums are in rank order or a
 * fixed ring, so the same ranks on the same nodes give the same bits.
 * Threads    one thread at a time per communicator; a strategy that overlaps opens a second one
 * Errors     DT_ERR_COMM if a peer is lost (within seconds, never a hang) or on timeout;
 *            the communicator is unusable after that
 */
#ifndef DT_ENGINE_COMM_COMM_H
#define DT_ENGINE_COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* group: describes some ranks of a run at equal distances: first, first + stride, first + 2 stride, ...
 *
 * Purpose    what a communicator connects: the whole run, or the ranks along one axis of its mesh
 *            (mesh.h). All ranks of a run are in groups of the same stride and size, so each rank
 *            knows all groups
 * Words      a *member* is counted within the group, a *rank* within the run
 */

typedef struct dt_group {
    int64_t rank, size;    /* the caller's member number, and the number of members */
    int64_t first, stride; /* first rank of the group, and distance between its ranks */
    int64_t world_size;    /* size of the run, a multiple of stride * size */
} dt_group;

/* The group of rank `rank`, if groups of `size` members are `stride` apart:
 *   stride 1, size 2   0 1 | 2 3 | 4 5        stride 2, size 3   0 2 4 | 1 3 5 */
static inline dt_group dt_group_of(int64_t rank, int64_t stride, int64_t size, int64_t world_size)
{
    int64_t block = stride * size, within = rank % block;
    dt_group members = {within / stride, size, rank - within + within % stride, stride, world_size};

    return members;
}

/* The group of all ranks. */
static inline dt_group dt_group_all(int64_t rank, int64_t world_size)
{
    return dt_group_of(rank, 1, world_size, world_size);
}

/* Rank of a member within the run. */
static inline int64_t dt_group_rank(const dt_group *group, int64_t member)
{
    return group->first + member * group->stride;
}

/* sum: declares the sums that collectives use, by element type.
 *
 * Formula    out[i] = ((a0[i] + a1[i]) + a2[i]) + ...: in the order given, so that the same parts
 *            give the same bits. BF16 is summed in fp32 and rounded once per call, to nearest even
 * Aliases    out may be any one of the parts
 */

typedef struct dt_sum {
    size_t elem_bytes;
    void (*two)(void *out, const void *a, const void *b, size_t elems);
    /* sums several operands; count >= 1 */
    void (*many)(void *out, const void *const *parts, int64_t count, size_t elems);
} dt_sum;

extern const dt_sum dt_sum_f32, dt_sum_f64, dt_sum_bf16;

const dt_sum *dt_sum_of(dt_dtype dtype); /* The sum for F32 or BF16. */

struct dt_device;
struct dt_events;
struct dt_queue;

typedef struct dt_comm {
    const char *name;
    int64_t rank, world_size; /* rank and size within the group */
    int64_t sent_bytes;       /* by this rank, computed by the algorithm's formula */
    void *state;
    /* NULL: a collective is complete when it returns. Otherwise (NCCL) it is queued there
     * (device/queue.h) and returns at once; its memory must not be touched until the queue has
     * finished it */
    struct dt_queue *queue;
    dt_status (*all_reduce)(struct dt_comm *, void *data, int64_t elems, dt_dtype dtype,
                            dt_error *err); /* sum over the ranks, in place; F32 or BF16 */
    dt_status (*all_reduce_f64)(struct dt_comm *, double *data, int64_t elems, dt_error *err);
    /* out[i] = sum over ranks of in[rank * elems + i]: in has world_size * elems elements, out
     * elems. dtype F32, or BF16 (sums in fp32, each rounded once per hop). out may be in + rank *
     * elems */
    dt_status (*reduce_scatter)(struct dt_comm *, void *out, const void *in, int64_t elems,
                                dt_dtype dtype, dt_error *err);
    /* out[r * bytes ...] = the `in` of rank r. in may be out + rank * bytes */
    dt_status (*all_gather)(struct dt_comm *, void *out, const void *in, size_t bytes,
                            dt_error *err);
    dt_status (*broadcast)(struct dt_comm *, void *data, size_t bytes, int64_t root, dt_error *err);
    dt_status (*barrier)(struct dt_comm *, dt_error *err);
    /* NULL if queue is NULL. Otherwise the host waits until all queued collectives are done;
     * returns an error if one was aborted, and then their results are garbage. */
    dt_status (*finish)(struct dt_comm *, dt_error *err);
    void (*close)(struct dt_comm *);
} dt_comm;

/* Timeout of a collective during training, and of the rendezvous before it. Longer than a healthy
 * rank can delay the others: by a step of many minutes, a checkpoint, or data that one node reads
 * slowly. A dead rank is noticed at once because its connection breaks, and the supervisor finds a
 * hanging one sooner: this timeout is for unsupervised ranks. */
#define DT_COMM_TIMEOUT_SECONDS 3600.0

/* Open a communicator. All ranks of the run call it, each with its group of one partition: the
 * whole run is dt_group_all, and a mesh's axis splits it into groups of one size, which meet
 * simultaneously. `name` distinguishes several communicators of one run (the rendezvous are
 * "comm/NAME/..."). timeout_seconds: for each collective and each rendezvous. */
dt_status dt_comm_open(dt_comm *out, struct dt_events *events, const char *name, dt_group group,
                       double timeout_seconds, dt_error *err);
void dt_comm_close(dt_comm *comm); /* accepts a zeroed communicator */

/* Like dt_comm_open, for collectives on this device's memory: all pointers except those of
 * all_reduce_f64 are device memory. On the CPU the same as dt_comm_open; on GPUs NCCL if each rank
 * has its own GPU, else open.c. Borrows the device. */
dt_status dt_comm_open_device(dt_comm *out, struct dt_device *device, struct dt_events *events,
                              const char *name, dt_group group, double timeout_seconds,
                              dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
