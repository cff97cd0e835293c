/* shard: the part of every unit that a rank updates, with its optimizer state.
 *
 * Purpose    what the strategies have in common once gradients are reduced: norm, update, first
 *            values, checkpoints. dp and ddp: whole units; fsdp: 1/W of each
 * Shapes     a slice is `elems` elements of a unit's flat buffer from start_elems on; it may reach
 *            beyond the unit's end, where all is zero and stays so
 * Groups     weight_decay is 0 for parameters without decay (dt_param.decay), unless all decay: two sets of factors
 * Ownership  owns its tables and the host's copies (host_mirror.h); the memory of the slices is the
 *            strategy's
 */
#ifndef DT_ENGINE_STRATEGY_SHARD_H
#define DT_ENGINE_STRATEGY_SHARD_H

#include "engine/device/layout.h"
#include "engine/device/upload_buffer.h"
#include "engine/strategy/graph_cache.h"
#include "engine/strategy/host_mirror.h"
#include "engine/strategy/strategy.h"

/* F32 unless it says otherwise. */
typedef struct dt_shard_unit {
    int64_t start_elems, elems;
    float *master;
    float *state[DT_OPTIMIZER_STATES]; /* of the optimizer; NULL where it has no such one. As the
                                        * slice lies, or, where matrices have no such one, of its
                                        * other parameters one behind the other */
    int64_t state_elems[DT_OPTIMIZER_STATES];
    float *grad; /* reduced */
    void *copy;  /* in the compute type, kept equal to master by every update; MAY be NULL */
} dt_shard_unit;

/* Ranks that hold the same whole units and share the work of matrices. */
typedef struct dt_shard_peers {
    void *self;
    int64_t rank, count; /* count 0: there are none */
    /* The matrix of rank `from` to all others; begins when it is shaped, and is not waited for */
    dt_status (*give)(void *self, float *matrix, int64_t elems, int64_t from, dt_error *err);
    dt_status (*wait)(void *self, dt_error *err); /* for all of them */
} dt_shard_peers;

typedef struct dt_shard {
    dt_model *model;
    const dt_optimizer *optimizer;
    dt_optimizer_options options;
    void *work; /* of the optimizer, for a whole matrix; NULL: it needs none */
    size_t work_bytes;
    /* MAY: *whole := the unit's gradients, of which every rank has made its slice's into a direction;
     * NULL: the slice is the unit */
    dt_status (*gather)(void *self, int unit, float **whole, dt_error *err);
    void *gather_self;
    dt_shard_peers peers;
    dt_shard_unit *units; /* filled by the strategy between open and make_tables */
    struct dt_shard_run *runs;
    int run_count;
    dt_state_chunk *chunks; /* the parameters' parts in the slices; host-readable */
    int chunk_count;
    dt_host_mirror host_mirror;
    dt_upload_buffer factors;    /* of the optimizer, for this step: without decay, and with it */
    dt_graph_cache *graph_cache; /* the update, recorded; NULL: launched one by one */
} dt_shard;

dt_status dt_shard_open(dt_shard *out, dt_model *model, const dt_optimizer_options *optimizer,
                        dt_error *err);
/* Updates are recorded where the device can; tells: this one's log speaks for all. */
dt_status dt_shard_record(dt_shard *shard, bool recorded, bool tells, dt_error *err);
void dt_shard_close(dt_shard *shard); /* accepts a zeroed or half-open one */

/* The optimizer's states of a slice. */
void dt_shard_take_states(dt_shard *shard, int unit, dt_layout *layout);
/* What the optimizer works in; once. */
void dt_shard_take_work(dt_shard *shard, dt_layout *layout);
/* A slice that is the whole unit: master, states, gradient and, where the compute type is another,
 * the copy; the model computes with them. */
void dt_shard_take_unit(dt_shard *shard, int unit, dt_layout *layout);
/* with_chunks: this rank reads and writes checkpoints. */
dt_status dt_shard_make_tables(dt_shard *shard, bool with_chunks, dt_error *err);

/* Of the states. */
int64_t dt_shard_optimizer_bytes(const dt_shard *shard);
/* As dt_strategy's export_state and import_state. */
dt_status dt_shard_export(dt_shard *shard, const dt_state_chunk **chunks, int *count,
                          dt_error *err);

/* The master's first values, through the chunks. */
dt_status dt_shard_init(dt_shard *shard, uint64_t seed, dt_error *err);
/* copy := master */
dt_status dt_shard_refresh(dt_shard *shard, dt_error *err);

/* Of all slices' gradients, in a fixed order. */
dt_status dt_shard_sum_squares(dt_shard *shard, double *out, dt_error *err);
dt_status dt_shard_update(dt_shard *shard, const dt_optimizer_args *args, dt_error *err);

/* The model forgets a strategy's memory and hooks. */
void dt_shard_leave_model(dt_model *model);

#endif
