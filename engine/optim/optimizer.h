/* optimizer: how each optimizer of recipes/optimizers.h steps. That table says how one is added.
 *
 * A strategy gives every part of the parameters that it holds to `step`, with the factors that
 * `factors` made of the recipe and the step's number. What changes from step to step is in the
 * factors alone, which lie in the device's memory: a step may be recorded and run again.
 */
#ifndef DT_ENGINE_OPTIMIZER_H
#define DT_ENGINE_OPTIMIZER_H

#include "engine/device/device.h"
#include "engine/ops/ops.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a step's factors are made from; g = grad * grad_scale in all formulas. */
typedef struct dt_optimizer_args {
    dt_optimizer_options options;
    double lr;         /* the schedule's, of this step */
    int64_t step;      /* from 1 */
    double grad_scale; /* the clip factor times the unscale factor */
} dt_optimizer_args;

/* A flat stretch of parameters that are stepped alike; all F32 (n) but `copy`. */
typedef struct dt_optimizer_part {
    dt_tensor param, grad;
    dt_tensor copy; /* := param in the compute type; without data: none */
    dt_tensor state[DT_OPTIMIZER_STATES];
    int states; /* how many there are: dt_optimizer_states */
} dt_optimizer_part;

typedef struct dt_optimizer {
    /* MUST: what does not depend on the element */
    void (*factors)(dt_optimizer_factors *out, const dt_optimizer_args *args);
    /* MUST: queued on the device; `factors` lie there */
    dt_status (*step)(dt_device *device, dt_optimizer_part *part,
                      const dt_optimizer_factors *factors, dt_error *err);
} dt_optimizer;

#define DT_OPTIMIZER_DECLARE(KIND, NAME, ...) extern const dt_optimizer dt_optimizer_##NAME;
DT_OPTIMIZERS(DT_OPTIMIZER_DECLARE)

const dt_optimizer *dt_optimizer_of(dt_optimizer_kind kind);

#ifdef __cplusplus
}
#endif
#endif
