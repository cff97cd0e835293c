/* shm: connects the ranks of one node through shared memory.
 *
 * A collective works in chunks. For each chunk:
 *   give   every rank copies what the others need of it into its own slot
 *   sum    every rank processes its own share of what all have given: for a sum, rank r adds up
 *          slice r of the chunk, in the order of the ranks
 *   take   (all-reduce) every rank copies the whole sum out of the common slot
 * In iteration c a rank takes chunk c-2, gives chunk c and sums chunk c-1: there are two slots
 * of each kind, used alternately, so that a rank that is late by less than a chunk delays no one.
 *
 *   GIVEN  of rank r counts the chunks that it has given, SUMMED those that it has processed.
 *   A slot can be written for chunk c when all have SUMMED c-2, the common slot when all have
 *   GIVEN c (then they have taken c-2 before). Both hold from one collective to the next.
 *
 * Order      sums are in the order of the ranks for any chunk size: same ranks, same bits. BF16 is
 *            summed in fp32 and rounded once
 * Sent       counted as if every other rank were reached over a network: 2(W-1)/W of the data
 *            for an all-reduce, (W-1) blocks for reduce-scatter and all-gather, and (W-1) times the
 *            data for the root of a broadcast
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/comm/comm.h"
#include "engine/comm/comm_int.h"
#include "engine/progress.h"

typedef struct shm_state {
    dt_segment segment;
    dt_barrier barrier;
    dt_peer *peers;
    const void **parts; /* [count]: operand pointers of a sum */
    uint32_t done;      /* chunks of all earlier collectives */
    bool broken;
} shm_state;

/* A collective in progress. Sizes in bytes. */
typedef struct work {
    shm_state *state;
    const dt_sum *sum;
    const char *in;
    char *out;
    size_t bytes; /* bytes of the data; for reduce-scatter and all-gather, of a block of them */
    size_t chunk_bytes;
    int64_t root;
    void (*give)(const struct work *, int parity, size_t start, size_t n);
    void (*add)(const struct work *, int parity, size_t start, size_t n);
    /* the stage `take`; can be NULL */
    void (*take)(const struct work *, int parity, size_t start, size_t n);
} work;

/* Processes one chunk: parity of the slots, first byte, length. */
typedef void (*stage)(const work *, int parity, size_t start, size_t n);

static void run_stage(const work *job, stage body, uint32_t chunk)
{
    size_t start = (size_t)chunk * job->chunk_bytes;
    size_t n = job->bytes - start < job->chunk_bytes ? job->bytes - start : job->chunk_bytes;

    body(job, (int)((job->state->done + chunk) & 1), start, n);
    dt_progress_made();
}

static dt_status run(const work *job, dt_error *err)
{
    shm_state *state = job->state;
    dt_barrier *barrier = &state->barrier;
    uint32_t chunks = (uint32_t)((job->bytes + job->chunk_bytes - 1) / job->chunk_bytes);
    uint32_t last = job->take != NULL ? chunks + 1 : chunks;
    dt_status st = DT_OK;

    if (state->broken)
        return DT_FAIL(err, DT_ERR_COMM, "the communicator has already failed");
    for (uint32_t c = 0; c <= last; c++) {
        if (c < chunks || job->take != NULL)
            DT_TRY(dt_barrier_wait(barrier, DT_BARRIER_SUMMED, state->done + c - 1, err));
        if (c >= 2 && job->take != NULL)
            run_stage(job, job->take, c - 2);
        if (c < chunks) {
            run_stage(job, job->give, c);
            dt_barrier_raise(barrier, DT_BARRIER_GIVEN);
        }
        if (c >= 1 && c <= chunks) {
            DT_TRY(dt_barrier_wait(barrier, DT_BARRIER_GIVEN, state->done + c, err));
            run_stage(job, job->add, c - 1);
            dt_barrier_raise(barrier, DT_BARRIER_SUMMED);
        }
    }
    state->done += chunks;
out:
    if (st != DT_OK) {
        state->broken = true;
        dt_barrier_leave(barrier); /* leave, so that the other ranks do not wait for this one */
    }
    return st;
}

static char *slot(const work *job, int parity, int64_t member)
{
    return dt_segment_slot(&job->state->segment, parity, member);
}

/* --- all-reduce: bytes start .. start+n of all ranks; slices are aligned to cache lines */

static void slice(const work *job, int64_t rank, size_t n, size_t *from, size_t *to)
{
    size_t count = (size_t)job->state->barrier.count;
    size_t each = ((n + count - 1) / count + 63) / 64 * 64;

    *from = each * (size_t)rank < n ? each * (size_t)rank : n;
    *to = *from + each < n ? *from + each : n;
}

static void give_others(const work *job, int parity, size_t start, size_t n)
{
    char *own = slot(job, parity, job->state->barrier.index);
    size_t from, to;

    slice(job, job->state->barrier.index, n, &from, &to);
    memcpy(own, job->in + start, from);
    memcpy(own + to, job->in + start + to, n - to);
}

static void add_slice(const work *job, int parity, size_t start, size_t n)
{
    shm_state *state = job->state;
    size_t from, to;

    slice(job, state->barrier.index, n, &from, &to);
    for (int64_t m = 0; m < state->barrier.count; m++)
        state->parts[m] =
            m == state->barrier.index ? job->in + start + from : slot(job, parity, m) + from;
    job->sum->many(slot(job, parity, state->barrier.count) + from, state->parts,
                   state->barrier.count, (to - from) / job->sum->elem_bytes);
}

static void take_all(const work *job, int parity, size_t start, size_t n)
{
    memcpy(job->out + start, slot(job, parity, job->state->barrier.count), n);
}

static dt_status all_reduce(dt_comm *comm, void *data, int64_t elems, const dt_sum *sum,
                            dt_error *err)
{
    work job = {.state = comm->state,
                .sum = sum,
                .in = data,
                .out = data,
                .bytes = (size_t)elems * sum->elem_bytes,
                .chunk_bytes = DT_SEGMENT_SLOT_BYTES,
                .give = give_others,
                .add = add_slice,
                .take = take_all};
    dt_status st = DT_OK;

    DT_TRY(run(&job, err));
    comm->sent_bytes += dt_comm_all_reduce_bytes(comm->world_size, (int64_t)job.bytes);
out:
    return st;
}

static dt_status shm_all_reduce(dt_comm *comm, void *data, int64_t elems, dt_dtype dtype,
                                dt_error *err)
{
    return all_reduce(comm, data, elems, dt_sum_of(dtype), err);
}

static dt_status shm_all_reduce_f64(dt_comm *comm, double *data, int64_t elems, dt_error *err)
{
    return all_reduce(comm, data, elems, &dt_sum_f64, err);
}

/* --- reduce-scatter: bytes start .. start+n of every block; in a slot, block r starts at r *
 * chunk_bytes */

static void give_blocks(const work *job, int parity, size_t start, size_t n)
{
    char *own = slot(job, parity, job->state->barrier.index);

    for (int64_t m = 0; m < job->state->barrier.count; m++)
        if (m != job->state->barrier.index)
            memcpy(own + (size_t)m * job->chunk_bytes, job->in + (size_t)m * job->bytes + start, n);
}

static void add_block(const work *job, int parity, size_t start, size_t n)
{
    shm_state *state = job->state;
    size_t own = (size_t)state->barrier.index;

    for (int64_t m = 0; m < state->barrier.count; m++)
        state->parts[m] = m == state->barrier.index ? job->in + own * job->bytes + start
                                                    : slot(job, parity, m) + own * job->chunk_bytes;
    job->sum->many(job->out + start, state->parts, state->barrier.count, n / job->sum->elem_bytes);
}

static dt_status shm_reduce_scatter(dt_comm *comm, void *out, const void *in, int64_t elems,
                                    dt_dtype dtype, dt_error *err)
{
    const dt_sum *sum = dt_sum_of(dtype);
    work job = {.state = comm->state,
                .sum = sum,
                .in = in,
                .out = out,
                .bytes = (size_t)elems * sum->elem_bytes,
                .chunk_bytes = DT_SEGMENT_SLOT_BYTES / (size_t)comm->world_size / 64 * 64,
                .give = give_blocks,
                .add = add_block};
    dt_status st = DT_OK;

    DT_TRY(run(&job, err));
    comm->sent_bytes += (comm->world_size - 1) * (int64_t)job.bytes;
out:
    return st;
}

/* --- all-gather and broadcast: copies */

static void give_own(const work *job, int parity, size_t start, size_t n)
{
    char *out = job->out + (size_t)job->state->barrier.index * job->bytes;

    memcpy(slot(job, parity, job->state->barrier.index), job->in + start, n);
    if (out != job->in)
        memcpy(out + start, job->in + start, n);
}

static void gather(const work *job, int parity, size_t start, size_t n)
{
    for (int64_t m = 0; m < job->state->barrier.count; m++)
        if (m != job->state->barrier.index)
            memcpy(job->out + (size_t)m * job->bytes + start, slot(job, parity, m), n);
}

static dt_status shm_all_gather(dt_comm *comm, void *out, const void *in, size_t bytes,
                                dt_error *err)
{
    work job = {.state = comm->state,
                .in = in,
                .out = out,
                .bytes = bytes,
                .chunk_bytes = DT_SEGMENT_SLOT_BYTES,
                .give = give_own,
                .add = gather};
    dt_status st = DT_OK;

    DT_TRY(run(&job, err));
    comm->sent_bytes += (comm->world_size - 1) * (int64_t)bytes;
out:
    return st;
}

static void give_root(const work *job, int parity, size_t start, size_t n)
{
    if (job->state->barrier.index == job->root)
        memcpy(slot(job, parity, job->root), job->in + start, n);
}

static void copy_root(const work *job, int parity, size_t start, size_t n)
{
    if (job->state->barrier.index != job->root)
        memcpy(job->out + start, slot(job, parity, job->root), n);
}

static dt_status shm_broadcast(dt_comm *comm, void *data, size_t bytes, int64_t root, dt_error *err)
{
    work job = {.state = comm->state,
                .in = data,
                .out = data,
                .bytes = bytes,
                .chunk_bytes = DT_SEGMENT_SLOT_BYTES,
                .root = root,
                .give = give_root,
                .add = copy_root};
    dt_status st = DT_OK;

    DT_ASSERT(root >= 0 && root < comm->world_size);
    DT_TRY(run(&job, err));
    if (comm->rank == root)
        comm->sent_bytes += (comm->world_size - 1) * (int64_t)bytes;
out:
    return st;
}

static void nothing(const work *job, int parity, size_t start, size_t n) {}

/* Runs a chunk without data that all ranks must give. */
static dt_status shm_barrier(dt_comm *comm, dt_error *err)
{
    work job = {
        .state = comm->state, .bytes = 1, .chunk_bytes = 1, .give = nothing, .add = nothing};

    return run(&job, err);
}

/* --- opening and closing */

static void shm_close(dt_comm *comm)
{
    shm_state *state = comm->state;

    if (state->segment.base != NULL)
        dt_barrier_leave(&state->barrier);
    dt_segment_close(&state->segment);
    free(state->parts);
    free(state->peers);
    free(state);
}

dt_status dt_comm_open_shm(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                           dt_error *err)
{
    const dt_topology *topology = setup->topology;
    size_t count = (size_t)out->world_size;
    shm_state *state = calloc(1, sizeof(*state));

    DT_ASSERT(segment->count == out->world_size);
    if (state != NULL) {
        state->peers = malloc(count * sizeof(*state->peers));
        state->parts = malloc(count * sizeof(*state->parts));
    }
    if (state == NULL || state->peers == NULL || state->parts == NULL) {
        if (state != NULL) {
            free(state->peers);
            free(state->parts);
        }
        free(state);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a communicator");
    }
    dt_topology_peers(state->peers, setup);
    state->segment = *segment;
    memset(segment, 0, sizeof(*segment));
    state->barrier =
        (dt_barrier){.members = dt_segment_members(&state->segment),
                     .peers = state->peers,
                     .count = out->world_size,
                     .index = out->rank,
                     .first_rank = dt_group_rank(&setup->group, topology->first[topology->node]),
                     .rank_stride = setup->group.stride,
                     .timeout_seconds = setup->timeout_seconds};
    out->name = "shm";
    out->state = state;
    out->all_reduce = shm_all_reduce;
    out->all_reduce_f64 = shm_all_reduce_f64;
    out->reduce_scatter = shm_reduce_scatter;
    out->all_gather = shm_all_gather;
    out->broadcast = shm_broadcast;
    out->barrier = shm_barrier;
    out->close = shm_close;
    return DT_OK;
}
