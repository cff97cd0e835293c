/* shard: updates the part of every unit that a rank owns, with its optimizer state.
 *
 * Purpose    what strategies share once gradients are reduced: norm, update, initial
 *            values, checkpoints. dp and ddp: whole units; fsdp: 1/W of each
 * Shapes     a slice is `elems` elements of a unit's flat buffer, starting at start_elems; it can extend
 *            past the unit's end, where everything is and stays zero
 * Tensor     a slice is of what this tensor rank holds; chunks say where that is in the whole parameter
 * Groups     weight_decay is 0 for parameters without decay (dt_param.decay), unless all decay: two sets
 *            of factors
 * Ownership  owns its tables and the host's copies (host_mirror.h); the strategy owns the memory of
 *            the slices
 */
#ifndef DT_ENGINE_STRATEGY_SHARD_H
#define DT_ENGINE_STRATEGY_SHARD_H

#include "engine/device/memory_layout.h"
#include "engine/device/upload_buffer.h"
#include "engine/strategy/graph_cache.h"
#include "engine/strategy/host_mirror.h"
#include "engine/strategy/strategy.h"

/* Tensors are F32 unless noted. */
typedef struct dt_shard_unit {
    int64_t start_elems, elems;
    float *master;
    /* optimizer states; NULL if the optimizer lacks that one. Laid out like the slice, or, if
     * matrices lack it, as the concatenation of the other parameters */
    float *state[DT_OPTIMIZER_STATES];
    int64_t state_elems[DT_OPTIMIZER_STATES];
    float *grad; /* reduced gradient of the slice */
    void *copy;  /* in the compute type, equal to master after every update; MAY be NULL */
} dt_shard_unit;

/* Ranks that hold the same whole units and divide the work on matrices among themselves. */
typedef struct dt_shard_peers {
    void *self;
    int64_t rank, count; /* this rank's number and the number of peers; count 0: none */
    /* Broadcast the matrix of rank `from` to the others; starts once the direction is computed,
     * does not wait */
    dt_status (*give)(void *self, float *matrix, int64_t elems, int64_t from, dt_error *err);
    dt_status (*wait)(void *self, dt_error *err); /* wait for all broadcasts */
} dt_shard_peers;

typedef struct dt_shard {
    dt_model *model;
    const dt_optimizer *optimizer;
    dt_optimizer_options options;
    void *work; /* the optimizer's scratch for a whole matrix; NULL: not needed */
    size_t work_bytes;
    /* MAY: gathers a unit's directions into *whole, after every rank has converted its slice of the
     * gradients to directions; NULL: the slice is the whole unit */
    dt_status (*gather)(void *self, int unit, float **whole, dt_error *err);
    void *gather_self;
    dt_shard_peers peers;
    /* filled by the strategy between dt_shard_open and dt_shard_make_tables */
    dt_shard_unit *units;
    struct dt_shard_run *runs;
    int run_count;
    dt_state_chunk *chunks; /* the parameters' parts in the slices; host-readable */
    /* the first counted_chunks are those that this rank counts (dt_param.held.counted) */
    int chunk_count, counted_chunks;
    dt_host_mirror host_mirror;
    /* the optimizer's factors for this step: without decay, and with decay */
    dt_upload_buffer factors;
    dt_graph_cache *graph_cache; /* the recorded update; NULL: ops are launched one by one */
} dt_shard;

dt_status dt_shard_open(dt_shard *out, dt_model *model, const dt_optimizer_options *optimizer,
                        dt_error *err);
/* Record updates as graphs if the device can; tells: whether this shard writes to the log about
 * them. */
dt_status dt_shard_record(dt_shard *shard, bool recorded, bool tells, dt_error *err);
void dt_shard_close(dt_shard *shard); /* accepts a zeroed or partly opened shard */

/* Allocate the optimizer states of a slice. */
void dt_shard_take_states(dt_shard *shard, int unit, dt_layout *layout);
/* Allocate the optimizer's scratch; call once. */
void dt_shard_take_work(dt_shard *shard, dt_layout *layout);
/* Allocate a slice that is the whole unit: master, states, gradient, and the copy if the compute
 * type is not fp32. The model computes with them. */
void dt_shard_take_unit(dt_shard *shard, int unit, dt_layout *layout);
/* with_chunks: this rank reads and writes checkpoints. */
dt_status dt_shard_make_tables(dt_shard *shard, bool with_chunks, dt_error *err);

/* Bytes of the optimizer states. */
int64_t dt_shard_optimizer_bytes(const dt_shard *shard);
/* Implement export_state and import_state of dt_strategy. */
dt_status dt_shard_export(dt_shard *shard, const dt_state_chunk **chunks, int *count,
                          dt_error *err);
dt_status dt_shard_import(dt_shard *shard, const dt_state_chunk **chunks, int *count,
                          dt_error *err);

/* Initialize the master, through the chunks. */
dt_status dt_shard_init(dt_shard *shard, uint64_t seed, dt_error *err);
/* Set each copy to its master: copy := master. */
dt_status dt_shard_refresh(dt_shard *shard, dt_error *err);

/* Once gradients are reduced along the data axis: add the terms of those that tensor ranks share (state->layer,
 * state->sharers). */
dt_status dt_shard_sum_terms(dt_shard *shard, const dt_strategy_state *state, dt_error *err);
/* Sum of squares of all slices' gradients that this rank counts, in a fixed order. */
dt_status dt_shard_sum_squares(dt_shard *shard, double *out, dt_error *err);
dt_status dt_shard_update(dt_shard *shard, const dt_optimizer_args *args, dt_error *err);

/* Detach a strategy's memory and hooks from the model. */
void dt_shard_leave_model(dt_model *model);

#endif
