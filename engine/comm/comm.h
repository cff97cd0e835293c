/* comm: collectives between the ranks of a run. A struct of functions per transport.
 *
 *   self   one rank: every collective is done when called
 *   shm    ranks of one node, through shared memory
 *   gloo   CPU ranks over TCP (shim in C++; every exception is caught at its border)
 *   nodes  several ranks on several nodes: shm within a node, gloo between them
 *   nccl   cards, one a rank (nccl.h); else staged, through host memory (staged.h)
 *
 * A communicator connects all ranks of a run, or those along one axis of its mesh (mesh.h): rank and
 * world_size are those within that group.
 *
 * Which one is found out when it is opened (topology.h); where the ranks of a node cannot share
 * memory all of them use Gloo, and the log says why. DTRUN_INTERFACE_ADDRESS is the interface that
 * Gloo's sockets bind to; DTRUN_RUN_SECRET is proved on each of its connections (proof.h says what
 * that protects from, and what it does not).
 *
 * All its ranks call the same collectives in the same order. Sums are in rank order or a fixed ring,
 * so that the same ranks on the same nodes give the same bits.
 * Threads    one thread at a time per communicator; a strategy that overlaps opens a second one
 * Errors     DT_ERR_COMM when a peer is gone or the timeout is over: within seconds, never a hang;
 *            the communicator is unusable after that
 */
#ifndef DT_ENGINE_COMM_H
#define DT_ENGINE_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/comm/group.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_device;
struct dt_events;
struct dt_queue;

typedef struct dt_comm {
    const char *name;
    int64_t rank, world_size; /* within the group */
    int64_t sent_bytes;       /* by this rank, counted by the formula of the algorithm */
    void *state;
    /* NULL: a collective is done when it returns. Else (NCCL) it is queued there (device/queue.h)
     * and returns at once; what it reads and writes is left alone until the queue has done it */
    struct dt_queue *queue;
    dt_status (*all_reduce)(struct dt_comm *, void *data, int64_t elems, dt_dtype dtype,
                            dt_error *err); /* F32 or BF16 */
    dt_status (*all_reduce_f64)(struct dt_comm *, double *data, int64_t elems, dt_error *err);
    /* out[i] = sum over ranks of in[rank * elems + i]: in has world_size * elems elements, out
     * elems. dtype F32, or BF16 (sums in fp32, each rounded once per hop). out may be in + rank *
     * elems */
    dt_status (*reduce_scatter)(struct dt_comm *, void *out, const void *in, int64_t elems,
                                dt_dtype dtype, dt_error *err);
    /* out[r * bytes ...] = what rank r gave. in may be out + rank * bytes */
    dt_status (*all_gather)(struct dt_comm *, void *out, const void *in, size_t bytes,
                            dt_error *err);
    dt_status (*broadcast)(struct dt_comm *, void *data, size_t bytes, int64_t root, dt_error *err);
    dt_status (*barrier)(struct dt_comm *, dt_error *err);
    /* NULL where queue is. Else the host waits until all that is queued is done; an error where
     * that was cut short, and what it wrote is garbage. */
    dt_status (*finish)(struct dt_comm *, dt_error *err);
    void (*close)(struct dt_comm *);
} dt_comm;

/* Of one collective while training, and of meeting before it: longer than the slowest honest rank
 * keeps the others waiting, which may be a step of many minutes, a checkpoint, or data that one node
 * reads slowly. A rank that is gone is noticed at once where its connection breaks, and one that
 * hangs is found sooner by whoever supervises it: this is for ranks that nobody supervises. */
#define DT_COMM_TIMEOUT_SECONDS 3600.0

/* All ranks of the run call it, each with its group of one partition: the whole run is dt_group_all,
 * and a mesh's axis splits it into groups of one size, which meet at once. `name` tells apart several
 * communicators of one run (the rendezvous are "comm/NAME/..."). timeout_seconds: of one collective,
 * and of one rendezvous. */
dt_status dt_comm_open(dt_comm *out, struct dt_events *events, const char *name, dt_group group,
                       double timeout_seconds, dt_error *err);
void dt_comm_close(dt_comm *comm); /* accepts a zeroed one */

/* As dt_comm_open, for collectives of this device's memory: all pointers but those of
 * all_reduce_f64 are device memory. On the CPU that is dt_comm_open; on GPUs NCCL where each rank
 * has a card of its own, else staged.h. Borrows the device. */
dt_status dt_comm_open_device(dt_comm *out, struct dt_device *device, struct dt_events *events,
                              const char *name, dt_group group, double timeout_seconds,
                              dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
