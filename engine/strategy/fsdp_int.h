/* fsdp_int: what the files of fsdp share.
 *
 *   fsdp.c          what is held and sent, setup, the hooks, a step, checkpoints
 *   fsdp_layout.c   the parts of the ranks, padding, memory and its accounts
 *   fsdp_gather.c   weights: gathered before they are used
 *   fsdp_reduce.c   gradients: summed and divided when they are complete
 *
 * A unit's flat buffer of E elements is cut into W equal parts of s elements, the least multiple of
 * 16 with W s >= E; the rest is zero. Rank r owns elements r s .. (r+1) s.
 */
#ifndef DT_ENGINE_FSDP_INT_H
#define DT_ENGINE_FSDP_INT_H

#include "engine/strategy/async_comm.h"
#include "engine/strategy/replica.h"
#include "engine/strategy/shard.h"

/* Memory for the weights of one unit at a time, gathered, in the compute type. */
typedef struct dt_fsdp_gather_buffer {
    void *weights;               /* (W s) */
    int unit;                    /* whose they are, or on their way; -1: none */
    dt_async_comm_ticket ticket; /* of the gather */
} dt_fsdp_gather_buffer;

/* Memory for the gradients of one unit on their way. */
typedef struct dt_fsdp_grad_buffer {
    float *grads; /* (W s), where the rank holds a part only; else NULL: model->grads is it */
    uint16_t *bf16_buffer; /* (W s), in bf16, where they are sent so; else NULL */
    int unit;              /* whose they are; -1: none */
    dt_async_comm_ticket ticket;
} dt_fsdp_grad_buffer;

typedef struct dt_fsdp {
    dt_replica replica;
    dt_device_arena memory;
    dt_shard shard; /* this rank's parts */
    dt_async_comm *async_comm;
    int64_t rank, world_size; /* along the data axis: r and W */

    /* What the options come to. */
    bool keeps_weights; /* a gather buffer a unit; else one for the root and two for all blocks */
    bool holds_weights; /* shard: gradients or optimizer. In fp32 the master is a part of them */
    bool holds_grads;   /* whole ones, until the last micro-step; else parts, after every one */
    bool sends_bf16;    /* gradients are sent in bf16 */

    dt_fsdp_gather_buffer *gather_buffers;
    dt_fsdp_grad_buffer *grad_buffers;
    float **whole_grads; /* per unit, where holds_grads */
    int gather_buffer_count, grad_buffer_count;
    int64_t micro_steps_left;
} dt_fsdp;

/* --- fsdp_layout.c */

/* Takes all memory and fills the accounts of the state. */
dt_status dt_fsdp_take_memory(dt_strategy_state *state, dt_error *err);
int64_t dt_fsdp_unit_elems(const dt_fsdp *own, int unit); /* W s */
dt_fsdp_gather_buffer *dt_fsdp_gather_buffer_of(const dt_fsdp *own, int unit);
dt_fsdp_grad_buffer *dt_fsdp_grad_buffer_of(const dt_fsdp *own, int unit);

/* --- fsdp_gather.c */

/* Starts to gather a unit's weights, unless they are there or on their way. What its gather buffer
 * holds must not be in use. */
dt_status dt_fsdp_gather_start(dt_strategy_state *state, int unit, dt_error *err);
/* They are there, for the model too. */
dt_status dt_fsdp_gather_wait(dt_strategy_state *state, int unit, dt_error *err);
/* For dt_shard.gather. */
dt_status dt_fsdp_gather_grads(void *self, int unit, float **whole, dt_error *err);
/* The masters have changed: whatever was gathered is old. */
void dt_fsdp_gather_forget(dt_strategy_state *state);

/* --- fsdp_reduce.c */

/* The model has zeroed memory for a unit's gradients of this micro-step, or what it has so far. */
dt_status dt_fsdp_reduce_begin(dt_strategy_state *state, int unit, dt_error *err);
/* They are complete; they go when their turn has come. */
dt_status dt_fsdp_reduce_start(dt_strategy_state *state, int unit, dt_error *err);
/* All that was sent is in shard.units[].grad. */
dt_status dt_fsdp_reduce_finish(dt_strategy_state *state, dt_error *err);

#endif
