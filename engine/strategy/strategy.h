/* strategy: what each rank holds of parameters, gradients and optimizer state, and when it talks.
 *
 * train.c never asks which strategy it has. A strategy owns the storage of the model's units, hangs
 * itself into the pass through dt_model_hooks, and runs the passes: dp has a replica a thread.
 *
 * Life: setup → (step_begin → forward_backward per micro-step → grads_finish → grad_norm →
 * update)* → teardown. evaluate, export and import between steps. A step whose gradients are not
 * finite (fp16) leaves update out.
 */
#ifndef DT_ENGINE_STRATEGY_H
#define DT_ENGINE_STRATEGY_H

#include "engine/comm/comm.h"
#include "engine/comm/mesh.h"
#include "engine/model/model.h"
#include "engine/optim/optimizer.h"
#include "engine/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_events;

/* What the recipe says about it. */
typedef struct dt_strategy_options {
    double bucket_mb, first_bucket_mb;
    dt_shard_kind shard;
    bool reshard_after_forward, reduce_each_micro_step;
    dt_reduce_kind reduce_dtype;
    dt_optimizer_options optimizer; /* what is kept beside each element; no step is taken by it */
    int64_t replicas;               /* dp: of this process; else 1 */
    bool loads;  /* a checkpoint follows: first values are not drawn, all are zero until then */
    bool graphs; /* what a GPU does step after step is recorded (graph_cache.h) */
} dt_strategy_options;

/* One micro-step's samples of this data rank, in host memory. dp: replica r has the samples
 * [r * samples / replicas, (r+1) * samples / replicas) and the data rank first_data_rank + r.
 *
 * Sizes      each batch has its own: samples from 1 to the model's config.batch (dp: times the
 *            replicas), and tensors as wide as these samples are, up to what the architecture says; of
 *            narrow ones there may be more samples, up to as many elements.
 *            Ranks, micro-steps and steps may all differ: a step is divided by the targets that count
 *            in all of it (loss_scale), however many a rank or a micro-step has of them. A rank with
 *            nothing left takes part with a sample none of whose targets counts
 */
typedef struct dt_micro_batch {
    dt_tensor inputs[DT_INPUTS_MAX]; /* as dt_batch has them: (samples, ...) */
    int64_t samples;
    uint64_t seed;
    uint32_t step, micro_step, first_data_rank; /* Philox key of dropout */
    const struct dt_micro_batch *parts; /* MAY: inputs and samples of each replica, instead of its
                                         * share of these: they are not of one width */
} dt_micro_batch;

/* A piece of one parameter that this rank holds; fp32 in host-readable memory. */
typedef struct dt_state_chunk {
    int param;      /* index in the model's table */
    dt_slice slice; /* of the parameter; what a rank holds of one may be several */
    float *value;
    float *state[DT_OPTIMIZER_STATES]; /* the optimizer's; NULL where it has no such one */
} dt_state_chunk;

/* What a chunk has of an element: 0 is the value, 1 + s the optimizer's state s. */
#define DT_STATE_KINDS (1 + DT_OPTIMIZER_STATES)
static inline float *dt_state_chunk_data(const dt_state_chunk *chunk, int kind)
{
    return kind == 0 ? chunk->value : chunk->state[kind - 1];
}

typedef struct dt_strategy_state {
    const struct dt_strategy *strategy;
    dt_model *model; /* borrowed */
    dt_mesh mesh;
    struct dt_comm *comm;     /* borrowed: the main thread's, of the whole run */
    struct dt_events *events; /* borrowed: to open further communicators */
    dt_strategy_options options;
    dt_model_hooks hooks; /* set up by the strategy, pointed to by model->hooks */
    void *own;
    bool keeps_weights; /* model->weights stay from one pass to the next, until an update */
    int64_t parameters_bytes, gradients_bytes, optimizer_bytes; /* held by this rank, from setup */
    int64_t held_bytes;                                         /* their sum */
    int64_t buffers_bytes; /* batches, gathered units, pieces being sent */
    int64_t sent_bytes;    /* of gradients and parameters, so far, by this rank; dp: moved between
                            * its replicas. Sums of a few numbers are left out */
} dt_strategy_state;

typedef struct dt_strategy {
    const char *name; /* the recipe's value */
    /* MUST: takes memory, initialises from the seed, broadcasts from data rank 0 */
    dt_status (*setup)(dt_strategy_state *, uint64_t seed, dt_error *);
    /* MUST: zero gradients; micro_steps says when the last one comes */
    dt_status (*step_begin)(dt_strategy_state *, int64_t micro_steps, dt_error *);
    /* MUST: forward and backward pass of one micro-step; gradients accumulate. loss_scale: 1 /
     * valid targets of the whole step, times the loss scale of fp16; loss_sum: the sum of the
     * losses of this rank's targets */
    dt_status (*forward_backward)(dt_strategy_state *, const dt_micro_batch *, double loss_scale,
                                  double *loss_sum, dt_error *);
    /* MUST: forward pass, dropout off; the sum of the targets' losses, and how many counted */
    dt_status (*evaluate)(dt_strategy_state *, const dt_micro_batch *, double *loss_sum,
                          int64_t *counted, dt_error *);
    /* MUST: gradients are reduced (SUM over ranks) when it returns */
    dt_status (*grads_finish)(dt_strategy_state *, dt_error *);
    /* MUST: norm over all ranks and parameters, tied ones once */
    dt_status (*grad_norm)(dt_strategy_state *, double *norm, dt_error *);
    /* MUST: one optimizer step over what is held; weight_decay applies to params with decay */
    dt_status (*update)(dt_strategy_state *, const dt_optimizer_args *args, dt_error *);
    /* MAY: a unit's parameters (F32, the device's memory) where every data rank holds all of them and
     * equal updates alone keep them equal; NULL: no rank has for long what another has too */
    void (*copy_of_unit)(dt_strategy_state *, int unit, float **master, int64_t *elems);
    /* MUST: the chunks that THIS rank writes into a checkpoint (ddp: data rank 0 all, others none).
     * The array is the strategy's, valid until the next step. */
    dt_status (*export_state)(dt_strategy_state *, const dt_state_chunk **chunks, int *count,
                              dt_error *);
    /* MUST: the chunks that this rank must fill from a checkpoint, then import_finish */
    dt_status (*import_state)(dt_strategy_state *, const dt_state_chunk **chunks, int *count,
                              dt_error *);
    dt_status (*import_finish)(dt_strategy_state *, dt_error *);
    /* MUST: accepts half-built state */
    void (*teardown)(dt_strategy_state *);
} dt_strategy;

extern const dt_strategy dt_strategy_dp, dt_strategy_ddp, dt_strategy_fsdp;

/* By the recipe's kind. */
const dt_strategy *dt_strategy_find(int kind);

#ifdef __cplusplus
}
#endif
#endif
