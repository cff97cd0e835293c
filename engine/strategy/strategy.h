/* strategy: what each rank holds of parameters, gradients and optimizer state, and when it talks.
 *
 * train.c never asks which strategy it has. A strategy owns the storage of the model's units and
 * hangs itself into the pass through dt_model_hooks.
 *
 * Life: setup → (step_begin → micro-steps of the model → grads_finish → grad_norm → update)* →
 * teardown. export and import between steps.
 */
#ifndef DT_ENGINE_STRATEGY_H
#define DT_ENGINE_STRATEGY_H

#include "engine/comm/comm.h"
#include "engine/model/model.h"
#include "engine/ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_events;

/* A piece of one parameter that this rank holds; fp32 in host-readable memory. */
typedef struct dt_state_chunk {
    int param;                  /* index in the model's table */
    int64_t start_elems, elems; /* the slice of the flattened parameter */
    float *value, *m, *v;       /* parameter and optimizer moments */
} dt_state_chunk;

typedef struct dt_strategy_state {
    const struct dt_strategy *strategy;
    dt_model *model;          /* borrowed */
    struct dt_comm *comm;     /* borrowed: the main thread's */
    struct dt_events *events; /* borrowed: to open further communicators */
    double bucket_mb;
    dt_model_hooks hooks; /* set up by the strategy, pointed to by model->hooks */
    void *own;
    int64_t parameters_bytes, gradients_bytes, optimizer_bytes; /* held by this rank, from setup */
    int64_t held_bytes;                                         /* their sum */
    int64_t sent_bytes;                                         /* so far, by this rank */
} dt_strategy_state;

typedef struct dt_strategy {
    const char *name; /* the recipe's value */
    /* MUST: takes memory, initialises from the seed, broadcasts from rank 0 */
    dt_status (*setup)(dt_strategy_state *, uint64_t seed, dt_error *);
    /* MUST: zero gradients; micro_steps says when the last one comes */
    dt_status (*step_begin)(dt_strategy_state *, int64_t micro_steps, dt_error *);
    /* MUST: before each micro-step's pass */
    dt_status (*micro_step_begin)(dt_strategy_state *, int64_t micro_step, dt_error *);
    /* MUST: gradients are reduced (SUM over ranks) when it returns */
    dt_status (*grads_finish)(dt_strategy_state *, dt_error *);
    /* MUST: norm over all ranks and parameters, tied ones once */
    dt_status (*grad_norm)(dt_strategy_state *, double *norm, dt_error *);
    /* MUST: one optimizer step over what is held; weight_decay applies to params with decay */
    dt_status (*update)(dt_strategy_state *, const dt_adamw_args *args, dt_error *);
    /* MUST: the chunks that THIS rank writes into a checkpoint (ddp: rank 0 all, others none).
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

extern const dt_strategy dt_strategy_ddp;

/* By the recipe's kind. */
const dt_strategy *dt_strategy_find(int kind);

#ifdef __cplusplus
}
#endif
#endif
