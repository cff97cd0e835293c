/* open: opens the communicator of a group, for host memory and for device memory. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/comm/comm.h"
#include "engine/comm/comm_int.h"
#include "engine/comm/nccl/nccl.h"
#include "engine/device/device.h"
#include "engine/device/queue.h"

/* staged: runs collectives of a device's memory through host memory, by another communicator.
 *
 * Purpose    for ranks that cannot use NCCL: two on one GPU, or no NCCL installed. Slower
 *            than NCCL by the cost of the copies
 * Algorithm  piece by piece: copy from the device to pinned memory, the host's collective, copy back.
 *            The copies have their own queue, concurrent with the ops
 * Sums       by the other communicator, piece by piece
 * Threads    like any communicator; the input must be complete when a collective is called
 */

#ifdef DT_HAVE_GLOO
static dt_status open_gloo_for_all(dt_comm *out, const dt_comm_setup *setup, dt_error *err)
{
    int64_t *ranks = malloc((size_t)setup->group.size * sizeof(*ranks));
    dt_status st;

    if (ranks == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a group of ranks");
    for (int64_t m = 0; m < setup->group.size; m++)
        ranks[m] = dt_group_rank(&setup->group, m);
    st = dt_comm_open_gloo(out, setup, ranks, err);
    free(ranks);
    return st;
}

/* Take part in the rendezvous of other groups of the run that span nodes. */
static dt_status let_others_meet(const dt_comm_setup *setup, dt_error *err)
{
    int64_t own = dt_group_rank(&setup->group, setup->group.rank);
    dt_comm alone = {.rank = 0, .world_size = 1};
    dt_status st = dt_comm_open_gloo(&alone, setup, &own, err);

    dt_comm_close(&alone);
    return st;
}

/* Open a communicator whose ranks of each node share a segment. */
static dt_status open_shared(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                             dt_error *err)
{
    dt_status st = DT_OK;

    if (setup->topology->node_count > 1)
        return dt_comm_open_nodes(out, setup, segment, err);
    if (setup->topology->some_cross)
        DT_TRY(let_others_meet(setup, err));
    DT_TRY(dt_comm_open_shm(out, setup, segment, err));
out:
    return st;
}
#else
static dt_status open_gloo_for_all(dt_comm *out, const dt_comm_setup *setup, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "cannot connect %lld ranks that share no memory: this dtrun-engine was built "
                   "without Gloo (install libgloo-dev and build again)",
                   (long long)setup->group.size);
}

static dt_status open_shared(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                             dt_error *err)
{
    return setup->topology->some_cross ? open_gloo_for_all(out, setup, err)
                                       : dt_comm_open_shm(out, setup, segment, err);
}
#endif

/* Choose the transport. Every choice is made for the whole run, because all ranks take part in the
 * same rendezvous. */
static dt_status open_by_place(dt_comm *out, const dt_comm_setup *setup, dt_error *err)
{
    const dt_topology *topology = setup->topology;
    bool shared = false;
    dt_segment segment = {0};
    dt_status st = DT_OK;

    if (topology->some_share)
        DT_TRY(dt_topology_map_segment(&shared, &segment, setup, err));
    if (shared)
        DT_TRY(open_shared(out, setup, &segment, err));
    else
        DT_TRY(open_gloo_for_all(out, setup, err));
    if (setup->group.rank == 0)
        dt_log_info("communicator '%s': %lld ranks on %lld node(s), through %s", setup->name,
                    (long long)setup->group.size, (long long)topology->node_count, out->name);
out:
    dt_segment_close(&segment);
    return st;
}

dt_status dt_comm_open(dt_comm *out, struct dt_events *events, const char *name, dt_group group,
                       double timeout_seconds, dt_error *err)
{
    dt_topology topology = {0};
    dt_comm_setup setup = {.events = events,
                           .name = name,
                           .group = group,
                           .timeout_seconds = timeout_seconds,
                           .topology = &topology};
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    DT_ASSERT(group.size >= 1 && group.rank >= 0 && group.rank < group.size);
    out->rank = group.rank;
    out->world_size = group.size;
    if (group.size == 1)
        return dt_comm_open_self(out);
    DT_TRY(dt_topology_find(&topology, &setup, err));
    DT_TRY(open_by_place(out, &setup, err));
    st = dt_comm_trace(out, name, err);
    if (st != DT_OK)
        dt_comm_close(out);
out:
    dt_topology_release(&topology);
    if (st != DT_OK) {
        memset(out, 0, sizeof(*out));
        dt_error_prefix(err, "rank %lld of %lld", (long long)dt_group_rank(&group, group.rank),
                        (long long)group.world_size);
    }
    return st;
}

/* --- device memory: NCCL, or host memory in between */

/* Large enough that a piece's latency is negligible, small compared with a rank's memory. */
#define PIECE_BYTES ((int64_t)16 << 20)

typedef struct staged {
    dt_comm host; /* communicator in host memory that runs the collectives */
    dt_device *device;
    dt_queue *queue;
    dt_device_event *copied;
    unsigned char *in, *out; /* pinned host buffers, PIECE_BYTES each */
} staged;

typedef struct copy {
    void *to;
    const void *from;
    size_t bytes;
} copy;

static dt_status wait(staged *staging, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(staging->device->queues->record(staging->device, staging->copied, staging->queue, err));
    DT_TRY(staging->device->queues->wait(staging->device, staging->copied, err));
out:
    return st;
}

static dt_status fetch(staged *staging, copy piece, dt_error *err)
{
    return staging->device->queues->copy_out(staging->device, staging->queue, piece.to, piece.from,
                                             piece.bytes, err);
}

static dt_status put(staged *staging, copy piece, dt_error *err)
{
    return staging->device->queues->copy_in(staging->device, staging->queue, piece.to, piece.from,
                                            piece.bytes, err);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* For a run of one rank: a copy on the device, ordered with its ops. */
static dt_status copy_alone(staged *staging, copy piece, dt_error *err)
{
    if (piece.to == piece.from || piece.bytes == 0)
        return DT_OK;
    return staging->device->copy_from(staging->device, piece.to, staging->device, piece.from,
                                      piece.bytes, err);
}

static dt_status staged_all_reduce(dt_comm *comm, void *data, int64_t elems, dt_dtype dtype,
                                   dt_error *err)
{
    staged *staging = comm->state;
    size_t each = dt_dtype_bytes(dtype);
    int64_t most = PIECE_BYTES / (int64_t)each;
    unsigned char *at = data;
    dt_status st = DT_OK;

    while (elems > 0 && comm->world_size > 1) {
        int64_t count = least(elems, most);
        size_t bytes = (size_t)count * each;

        DT_TRY(fetch(staging, (copy){staging->in, at, bytes}, err));
        DT_TRY(wait(staging, err));
        DT_TRY(staging->host.all_reduce(&staging->host, staging->in, count, dtype, err));
        DT_TRY(put(staging, (copy){at, staging->in, bytes}, err));
        DT_TRY(wait(staging, err));
        at += bytes;
        elems -= count;
    }
out:
    comm->sent_bytes = staging->host.sent_bytes;
    return st;
}

/* Processes the same piece of every rank's part at a time. */
static dt_status staged_reduce_scatter(dt_comm *comm, void *out, const void *in, int64_t elems,
                                       dt_dtype dtype, dt_error *err)
{
    staged *staging = comm->state;
    size_t each = dt_dtype_bytes(dtype);
    int64_t most = PIECE_BYTES / ((int64_t)each * comm->world_size);
    dt_status st = DT_OK;

    if (comm->world_size == 1)
        return copy_alone(staging, (copy){out, in, (size_t)elems * each}, err);

    for (int64_t start = 0; start < elems; start += most) {
        int64_t count = least(elems - start, most);
        size_t bytes = (size_t)count * each;

        for (int64_t rank = 0; rank < comm->world_size; rank++)
            DT_TRY(fetch(staging,
                         (copy){staging->in + (size_t)rank * bytes,
                                (const unsigned char *)in + (size_t)(rank * elems + start) * each,
                                bytes},
                         err));
        DT_TRY(wait(staging, err));
        DT_TRY(staging->host.reduce_scatter(&staging->host, staging->out, staging->in, count, dtype,
                                            err));
        DT_TRY(put(staging,
                   (copy){(unsigned char *)out + (size_t)start * each, staging->out, bytes}, err));
        DT_TRY(wait(staging, err));
    }
out:
    comm->sent_bytes = staging->host.sent_bytes;
    return st;
}

static dt_status staged_all_gather(dt_comm *comm, void *out, const void *in, size_t bytes,
                                   dt_error *err)
{
    staged *staging = comm->state;
    size_t most = (size_t)(PIECE_BYTES / comm->world_size);
    dt_status st = DT_OK;

    if (comm->world_size == 1)
        return copy_alone(staging, (copy){out, in, bytes}, err);

    for (size_t start = 0; start < bytes; start += most) {
        size_t count = bytes - start < most ? bytes - start : most;

        DT_TRY(fetch(staging, (copy){staging->in, (const unsigned char *)in + start, count}, err));
        DT_TRY(wait(staging, err));
        DT_TRY(staging->host.all_gather(&staging->host, staging->out, staging->in, count, err));
        for (int64_t rank = 0; rank < comm->world_size; rank++)
            DT_TRY(put(staging,
                       (copy){(unsigned char *)out + (size_t)rank * bytes + start,
                              staging->out + (size_t)rank * count, count},
                       err));
        DT_TRY(wait(staging, err));
    }
out:
    comm->sent_bytes = staging->host.sent_bytes;
    return st;
}

static dt_status staged_broadcast(dt_comm *comm, void *data, size_t bytes, int64_t root,
                                  dt_error *err)
{
    staged *staging = comm->state;
    unsigned char *at = data;
    dt_status st = DT_OK;

    while (bytes > 0 && comm->world_size > 1) {
        size_t count = bytes < (size_t)PIECE_BYTES ? bytes : (size_t)PIECE_BYTES;

        if (comm->rank == root) {
            DT_TRY(fetch(staging, (copy){staging->in, at, count}, err));
            DT_TRY(wait(staging, err));
        }
        DT_TRY(staging->host.broadcast(&staging->host, staging->in, count, root, err));
        if (comm->rank != root) {
            DT_TRY(put(staging, (copy){at, staging->in, count}, err));
            DT_TRY(wait(staging, err));
        }
        at += count;
        bytes -= count;
    }
out:
    comm->sent_bytes = staging->host.sent_bytes;
    return st;
}

static dt_status staged_all_reduce_f64(dt_comm *comm, double *data, int64_t elems, dt_error *err)
{
    staged *staging = comm->state;

    return staging->host.all_reduce_f64(&staging->host, data, elems, err);
}

static dt_status staged_barrier(dt_comm *comm, dt_error *err)
{
    staged *staging = comm->state;

    return staging->host.barrier(&staging->host, err);
}

static void release(staged *staging)
{
    const dt_queues *queues = staging->device->queues;

    dt_comm_close(&staging->host);
    queues->close(staging->device, staging->queue);
    queues->event_close(staging->device, staging->copied);
    staging->device->host_free(staging->device, staging->in);
    staging->device->host_free(staging->device, staging->out);
    free(staging);
}

static void staged_close(dt_comm *comm)
{
    release(comm->state);
}

/* Turn *comm into a communicator for device memory, which owns the original one. On failure *comm
 * is closed. Borrows the device. */
static dt_status comm_stage(dt_comm *comm, dt_device *device, dt_error *err)
{
    staged *staging = calloc(1, sizeof(*staging));
    dt_status st = DT_OK;

    if (staging == NULL) {
        dt_comm_close(comm);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a communicator");
    }
    staging->host = *comm;
    staging->device = device;
    memset(comm, 0, sizeof(*comm));
    DT_ASSERT(staging->host.world_size <= PIECE_BYTES / 64);
    DT_TRY(device->queues->open(device, &staging->queue, err));
    DT_TRY(device->queues->event_open(device, &staging->copied, err));
    DT_TRY(device->host_alloc(device, (void **)&staging->in, (size_t)PIECE_BYTES, err));
    DT_TRY(device->host_alloc(device, (void **)&staging->out, (size_t)PIECE_BYTES, err));
    *comm = (dt_comm){
        .name = "staged",
        .rank = staging->host.rank,
        .world_size = staging->host.world_size,
        .state = staging,
        .all_reduce = staged_all_reduce,
        .all_reduce_f64 = staged_all_reduce_f64,
        .reduce_scatter = staged_reduce_scatter,
        .all_gather = staged_all_gather,
        .broadcast = staged_broadcast,
        .barrier = staged_barrier,
        .close = staged_close,
    };
out:
    if (st != DT_OK)
        release(staging);
    return st;
}

/* Use NCCL if all ranks can, otherwise stage through the host's communicator *comm. */
static dt_status reach_cards(dt_comm *comm, dt_device *device, const dt_comm_setup *setup,
                             dt_error *err)
{
    dt_comm cards = {0};
    dt_status st = DT_OK;

    if (setup->group.size > 1)
        DT_TRY(dt_nccl_rendezvous(&cards, setup, device, comm, err));
    if (cards.name == NULL)
        return comm_stage(comm, device, err);
    *comm = cards;
    DT_TRY(dt_comm_trace(comm, setup->name, err));
out:
    if (st != DT_OK)
        dt_comm_close(comm);
    return st;
}

dt_status dt_comm_open_device(dt_comm *out, dt_device *device, struct dt_events *events,
                              const char *name, dt_group group, double timeout_seconds,
                              dt_error *err)
{
    dt_comm_setup setup = {
        .events = events, .name = name, .group = group, .timeout_seconds = timeout_seconds};
    dt_status st = DT_OK;

    DT_TRY(dt_comm_open(out, events, name, group, timeout_seconds, err));
    if (!device->host_reads)
        DT_TRY(reach_cards(out, device, &setup, err));
out:
    return st;
}
