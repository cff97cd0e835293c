/* pass: runs a model's forward and backward pass over a micro-step, recorded as graphs if the device can
 * (graph_cache.h). Each of the strategy's hooks is a break, and is called in every run in the same order
 * as the model would call it.
 *
 * What changes from micro-step to micro-step is in device memory: the batch's inputs, the clock of
 * dropout, and the scale of the loss, which changes with the number of targets and with fp16. Seed, data
 * rank, shapes and the addresses of all these are the key.
 * Ownership  borrows the model. Threads: one per model
 */
#ifndef DT_ENGINE_STRATEGY_PASS_H
#define DT_ENGINE_STRATEGY_PASS_H

#include "engine/model/model.h"
#include "engine/strategy/graph_cache.h"

typedef struct dt_pass {
    dt_model *model;
    dt_graph_cache *graph_cache; /* recorded ops; NULL: ops are launched one by one */
    /* addresses of the units' weights, then gradients; swapped with the model's during recording */
    void **places;
} dt_pass;

/* recorded: use graphs if the device can; tells: whether this pass writes to the log about them. */
dt_status dt_pass_open(dt_pass *out, dt_model *model, bool recorded, bool tells, dt_error *err);
void dt_pass_close(dt_pass *pass); /* accepts a zeroed pass */

/* Like dt_model_pass; batch->clock is required. A recording contains the address of loss_scale, not
 * its value. */
dt_status dt_pass_run(dt_pass *pass, const dt_batch *batch, const double *loss_scale,
                      dt_error *err);

#endif
