/* fsdp_int: declares what the files of fsdp share.
 *
 *   fsdp.c          what is held and sent, setup, the hooks, a step, checkpoints
 *   fsdp_layout.c   the parts of the ranks, padding, memory and its accounts
 *   fsdp_comm.c     weights: gathered before they are used; gradients: summed and divided when they are complete
 *
 * W and r are the size of the shard axis of the mesh (engine/comm/mesh.h) and the rank along it. A unit's flat buffer of
 * E elements is cut into W equal parts of s elements, the least multiple of 16 with W s >= E; the rest is zero. Rank r owns elements r s .. (r+1) s.
 */
#ifndef DT_ENGINE_FSDP_INT_H
#define DT_ENGINE_FSDP_INT_H

#include "engine/strategy/strategy_int.h"

/* A buffer for the gathered weights of one unit at a time, in the compute type. */
typedef struct dt_fsdp_gather_buffer {
    void *weights;               /* (W s): gathered weights of the unit */
    int unit;                    /* unit whose weights it holds or receives; -1: none */
    dt_async_comm_ticket ticket; /* ticket of the gather */
    /* the same of the frozen parameters, which updates do not change */
    void *frozen;
    int frozen_unit;
    dt_async_comm_ticket frozen_ticket;
} dt_fsdp_gather_buffer;

/* A buffer for the gradients of one unit while they are reduced. */
typedef struct dt_fsdp_grad_buffer {
    /* (W s), if the rank holds only a part of them; else NULL: they are in model->grads */
    float *grads;
    uint16_t *bf16_buffer; /* (W s): gradients converted for reduce_dtype bf16; else NULL */
    int unit;              /* unit whose gradients it holds; -1: none */
    bool last;             /* they are those of the last micro-step */
    dt_async_comm_ticket ticket;
} dt_fsdp_grad_buffer;

typedef struct dt_fsdp {
    dt_replica replica;
    dt_device_arena memory;
    dt_shard shard;            /* this rank's parts of all units */
    dt_async_comm *async_comm; /* along the shard axis */
    dt_async_comm *replicas;  /* along the replica axis; NULL: no other rank holds the same parts */
    int64_t rank, world_size; /* r and W */

    /* The following are derived from the options: */
    /* one gather buffer per unit; else one for the root and two for all blocks */
    bool keeps_weights;
    /* weights are held whole (shard: gradients or optimizer). In fp32 they contain the master */
    bool holds_weights;
    /* gradients are held whole until the last micro-step; else in parts, reduced after each */
    bool holds_grads;
    bool sends_bf16; /* gradients are sent in bf16 (reduce_dtype) */

    dt_fsdp_gather_buffer *gather_buffers;
    dt_fsdp_grad_buffer *grad_buffers;
    float **whole_grads; /* per unit: the whole gradients, if holds_grads */
    /* per unit (s): the part's gradients in bf16, summed over replicas; NULL: they are summed in fp32 */
    uint16_t **bf16_parts;
    int gather_buffer_count, grad_buffer_count;
    int64_t micro_steps_left;
} dt_fsdp;

/* --- fsdp_layout.c */

/* Allocate all memory and set the byte counts of the state. */
dt_status dt_fsdp_take_memory(dt_strategy_state *state, dt_error *err);
int64_t dt_fsdp_unit_elems(const dt_fsdp *own, int unit); /* padded size of a unit: W s elements */
dt_fsdp_gather_buffer *dt_fsdp_gather_buffer_of(const dt_fsdp *own, int unit);
dt_fsdp_grad_buffer *dt_fsdp_grad_buffer_of(const dt_fsdp *own, int unit);

/* --- fsdp_comm.c */

/* Start gathering a unit's weights, unless they are gathered or being gathered. The contents of its
 * gather buffer must no longer be in use. */
dt_status dt_fsdp_gather_start(dt_strategy_state *state, int unit, dt_error *err);
/* Wait for the gather, and point the model to the weights. */
dt_status dt_fsdp_gather_wait(dt_strategy_state *state, int unit, dt_error *err);
/* Gathers whole directions: implements dt_shard.gather. */
dt_status dt_fsdp_gather_grads(void *self, int unit, float **whole, dt_error *err);
/* Invalidate all gathered weights, because the masters have changed; frozen: also those of frozen parameters. */
void dt_fsdp_gather_forget(dt_strategy_state *state, bool frozen);

/* --- fsdp_comm.c */

/* Give the model a buffer for a unit's gradients: zeroed, or with the sum of earlier micro-steps. */
dt_status dt_fsdp_reduce_begin(dt_strategy_state *state, int unit, dt_error *err);
/* A unit's gradients of this micro-step are complete: start reducing them if they are due. */
dt_status dt_fsdp_reduce_start(dt_strategy_state *state, int unit, dt_error *err);
/* Wait until all reduced gradients are in shard.units[].grad. */
dt_status dt_fsdp_reduce_finish(dt_strategy_state *state, dt_error *err);
/* Set the state's count of sent bytes. */
void dt_fsdp_count_sent(dt_strategy_state *state);

#endif
