/* pass: a model's forward and backward pass over a micro-step, recorded where the device can
 * (graph_cache.h), with a break at each of the strategy's hooks, which are called in every run as
 * they would be from the model.
 *
 * What changes from micro-step to micro-step is in device memory: the batch's inputs, the clock of
 * dropout, and the scale of the loss, which moves with the targets that count and with fp16. Seed, data
 * rank, shapes and where all of that lies are the key.
 * Ownership  borrows the model. Threads: one per model
 */
#ifndef DT_ENGINE_STRATEGY_PASS_H
#define DT_ENGINE_STRATEGY_PASS_H

#include "engine/model/model.h"
#include "engine/strategy/graph_cache.h"

typedef struct dt_pass {
    dt_model *model;
    dt_graph_cache *graph_cache; /* NULL: ops are launched one by one */
    void **places; /* weights, then gradients of the units; while others stand in the model */
} dt_pass;

/* recorded: where the device can; tells: this one's log speaks for all. */
dt_status dt_pass_open(dt_pass *out, dt_model *model, bool recorded, bool tells, dt_error *err);
void dt_pass_close(dt_pass *pass); /* accepts a zeroed one */

/* As dt_model_pass; batch->clock is required. What is recorded of loss_scale is where it lies. */
dt_status dt_pass_run(dt_pass *pass, const dt_batch *batch, const double *loss_scale,
                      dt_error *err);

#endif
