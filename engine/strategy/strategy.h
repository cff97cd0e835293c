/* strategy: which parameters, gradients and optimizer state each rank holds, and what it communicates; and
 * the communicator of ranks that divide a layer.
 *
 * train.c never asks which strategy it has. A strategy owns the storage of the model's units, follows
 * passes through dt_model_hooks, and runs the passes: dp has one replica per thread.
 *
 * Parameters that are not trained (dt_model_config.frozen) are held in the compute type alone, without gradients and
 * moments, and are sent only to those that lack them: at the start, and by fsdp when a unit is used. In the tables of
 * bytes at the head of each strategy an element of theirs has the line "parameters (compute type)" only.
 *
 * Life: setup → (step_begin → forward_backward per micro-step → grads_finish → grad_norm →
 * update)* → teardown. evaluate, export and import are called between steps. A step whose gradients are
 * not finite (fp16) omits update.
 */
#ifndef DT_ENGINE_STRATEGY_STRATEGY_H
#define DT_ENGINE_STRATEGY_STRATEGY_H

#include "engine/comm/comm.h"
#include "engine/comm/mesh.h"
#include "engine/device/queue.h"
#include "engine/model/model.h"
#include "engine/optim/optimizer.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_events;

/* Options of a strategy, from the recipe. */
typedef struct dt_strategy_options {
    double bucket_mb, first_bucket_mb;
    dt_shard_kind shard;
    bool reshard_after_forward, reduce_each_micro_step;
    dt_reduce_kind reduce_dtype;
    /* determines the states per element; its step values are not used */
    dt_optimizer_options optimizer;
    int64_t replicas; /* dp: replicas in this process; else 1 */
    bool
        loads; /* all trained parameters will be loaded: they are zero until then instead of random */
    bool graphs; /* record what a GPU repeats every step as graphs (strategy_int.h) */
} dt_strategy_options;

/* One micro-step's samples of this data rank, in host memory. dp: replica r has the samples
 * [r * samples / replicas, (r+1) * samples / replicas) and the data rank first_data_rank + r.
 *
 * Sizes      each batch has its own: from 1 sample to the model's config.batch (dp: times the
 *            replicas), and tensors as wide as its samples, up to the architecture's width; a batch of
 *            narrow samples can have more of them, up to the same number of elements.
 *            Ranks, micro-steps and steps can all differ: a step is divided by the number of targets that
 *            count in all of it (loss_scale), however they are distributed. A rank without samples left
 *            takes part with a sample whose targets do not count
 */
typedef struct dt_micro_batch {
    dt_tensor inputs[DT_INPUTS_MAX]; /* input tensors as in dt_batch: (samples, ...) */
    int64_t samples;
    uint64_t seed;
    uint32_t step, micro_step, first_data_rank; /* for the Philox key of dropout */
    /* MAY: in evaluate, replica r adds to counts_of_classes + r * classes^2 (dt_model_count_classes) */
    int64_t *counts_of_classes;
    /* MAY: separate inputs and samples of each replica, if they differ in width */
    const struct dt_micro_batch *parts;
} dt_micro_batch;

/* A piece of one parameter that this rank holds; fp32 in host-readable memory. */
typedef struct dt_state_chunk {
    int param;      /* index of the parameter in the model's table */
    dt_slice slice; /* part of the parameter; a rank can hold several parts */
    float *value;   /* NULL: of the base of an adapter, in `frozen` alone */
    /* a tensor that is not trained, in the compute type and device memory; no data: trained */
    dt_tensor frozen;
    /* NULL also if the parameter is not trained */
    float *state[DT_OPTIMIZER_STATES]; /* optimizer states; NULL if the optimizer lacks that one */
} dt_state_chunk;

/* The tensors of a chunk: kind 0 is the value, kind 1 + s the optimizer's state s. */
#define DT_STATE_KINDS (1 + DT_OPTIMIZER_STATES)
static inline float *dt_state_chunk_data(const dt_state_chunk *chunk, int kind)
{
    return kind == 0 ? chunk->value : chunk->state[kind - 1];
}

/* What this rank holds of a parameter, from element `first` of what its tensor rank holds; in device memory. */
typedef struct dt_held_part {
    int64_t first, elems;
    float *value, *grad; /* NULL: not trained */
    void *state[DT_OPTIMIZER_STATES];
    dt_dtype state_dtype;
    dt_tensor frozen; /* not trained; no data: trained */
} dt_held_part;

/* MAY: sees the gradients of a unit, F32 in device memory, before they are sent to other ranks. */
typedef struct dt_before_send {
    void (*see)(void *self, int unit, float *grads, int64_t elems); /* NULL: nobody looks */
    void *self;
} dt_before_send;

typedef struct dt_strategy_state {
    const struct dt_strategy *strategy;
    dt_model *model; /* the model, borrowed */
    dt_mesh mesh;
    struct dt_comm *comm; /* borrowed: the main thread's, spans the whole run */
    /* borrowed, for gradients that are terms of a sum (dt_param.held.summed): the ranks that divide
     * layers, and those among them that share parameters, if these are fewer. NULL: none */
    const dt_layer_peers *layer, *sharers;
    struct dt_events *events; /* events channel, borrowed, to open further communicators */
    dt_strategy_options options;
    dt_model_hooks hooks;       /* set by the strategy; model->hooks points here */
    dt_before_send before_send; /* set by the owner, after setup */
    void *own;
    bool keeps_weights; /* model->weights stay valid across passes, until an update */
    /* bytes held by this rank, since setup */
    int64_t parameters_bytes, gradients_bytes, optimizer_bytes;
    int64_t held_bytes;    /* sum of the three numbers above */
    int64_t buffers_bytes; /* bytes of batches, gathered units, pieces being sent */
    /* bytes of gradients and parameters sent by this rank so far; dp: moved between its
     * replicas. Excludes sums of a few numbers */
    int64_t sent_bytes;
} dt_strategy_state;

typedef struct dt_strategy {
    const char *name; /* name of the strategy in the recipe */
    /* MUST: allocates memory, initializes parameters from the seed, broadcasts from data rank 0 */
    dt_status (*setup)(dt_strategy_state *, uint64_t seed, dt_error *);
    /* MUST: zeroes gradients; micro_steps: number of forward_backward calls that follow */
    dt_status (*step_begin)(dt_strategy_state *, int64_t micro_steps, dt_error *);
    /* MUST: forward and backward pass of one micro-step; gradients accumulate. loss_scale: 1 /
     * valid targets of the whole step, times the loss scale of fp16; loss_sum: the sum of the
     * losses of this rank's targets */
    dt_status (*forward_backward)(dt_strategy_state *, const dt_micro_batch *, double loss_scale,
                                  double *loss_sum, dt_error *);
    /* MUST: forward pass without dropout; the sum of the targets' losses, and of their weights */
    dt_status (*evaluate)(dt_strategy_state *, const dt_micro_batch *, double *loss_sum,
                          double *counted, dt_error *);
    /* MUST: returns when gradients are reduced (SUM over the ranks that have terms of them) */
    dt_status (*grads_finish)(dt_strategy_state *, dt_error *);
    /* MUST: norm over all ranks and parameters; tied parameters count once */
    dt_status (*grad_norm)(dt_strategy_state *, double *norm, dt_error *);
    /* MUST: one optimizer step over the parameters held; weight_decay applies to params with decay */
    dt_status (*update)(dt_strategy_state *, const dt_optimizer_args *args, dt_error *);
    /* MAY: what this rank holds of a unit's parameters (F32, device memory), which the other ranks of the replica axis
     * hold too, equal only by equal updates; NULL: parameters are never replicated */
    void (*copy_of_unit)(dt_strategy_state *, int unit, float **master, int64_t *elems);
    /* MUST: what this rank holds of a parameter; false: nothing */
    bool (*held_part)(const dt_strategy_state *, int param, dt_held_part *out);
    /* MUST: the chunks that THIS rank writes into a checkpoint (replica 0 all that it holds, others none), each of which
     * no other rank writes.
     * The strategy owns the array; it is valid until the next step. */
    dt_status (*export_state)(dt_strategy_state *, const dt_state_chunk **chunks, int *count,
                              dt_error *);
    /* MUST: the chunks that this rank must fill from a checkpoint before it calls import_finish */
    dt_status (*import_state)(dt_strategy_state *, const dt_state_chunk **chunks, int *count,
                              dt_error *);
    /* MUST: sets elements of a chunk of the base of an adapter, from `at` on; before import_finish */
    dt_status (*import_base)(dt_strategy_state *, const dt_state_chunk *, int64_t at,
                             const float *values, int64_t elems, dt_error *);
    dt_status (*import_finish)(dt_strategy_state *, dt_error *);
    /* MUST: release everything; accepts partly built state */
    void (*teardown)(dt_strategy_state *);
} dt_strategy;

extern const dt_strategy dt_strategy_dp, dt_strategy_ddp, dt_strategy_fsdp;

/* The strategy for the recipe's kind. */
const dt_strategy *dt_strategy_find(int kind);

/* layer_comm: a communicator for sums within a layer, by the ranks that divide it (dt_layer_peers in engine/model/model.h).
 *
 * A collective is ordered with the device's ops like an op. On the CPU it is complete when the call returns. With
 * NCCL its queue follows the ops before it, and the ops after it follow its queue; the host does not wait. Through
 * host memory (engine/comm/open.c) the host waits for the ops before it.
 * Graphs     a collective cannot be recorded (engine/device/queue.h): ranks that divide layers record nothing
 * Threads    that of the model; the strategy's own communicator (strategy_int.h) works beside it
 */

typedef struct dt_layer_comm {
    dt_comm comm;
    dt_device *device;
    dt_device_event *ready, *done; /* the ops before a collective, and the collective */
    dt_layer_peers peers; /* calls this communicator; valid while the struct stays in place */
} dt_layer_comm;

/* Collective: opens a communicator `name` of the caller's group. Borrows device and events. */
dt_status dt_layer_comm_open(dt_layer_comm *out, dt_device *device, struct dt_events *events,
                             const char *name, dt_group group, dt_error *err);
void dt_layer_comm_close(dt_layer_comm *own); /* accepts a zeroed or partly opened struct */

#ifdef __cplusplus
}
#endif

#endif
