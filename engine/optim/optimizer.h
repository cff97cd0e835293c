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

/* Parameters that have factors of their own. */
typedef enum dt_optimizer_group {
    DT_GROUP_KEPT, /* no weight decay */
    DT_GROUP_DECAYED,
    DT_GROUP_MATRIX, /* stepped whole; there are some where the optimizer has `matrices` */
    DT_OPTIMIZER_GROUPS
} dt_optimizer_group;

/* A flat stretch of parameters that are stepped alike; all F32 (n) but `copy`. */
typedef struct dt_optimizer_part {
    dt_tensor param, grad;
    dt_tensor copy; /* := param in the compute type; without data: none */
    dt_tensor state[DT_OPTIMIZER_STATES];
    int states; /* how many there are: dt_optimizer_states */
} dt_optimizer_part;

/* How hidden matrices are stepped by an optimizer that needs them whole: `direct` on the parts that
 * ranks hold, `shape` on whole directions, wherever they were put together, and `apply` on the parts
 * again. All are queued on the device. */
typedef struct dt_optimizer_matrices {
    void (*factors)(dt_optimizer_factors *out, const dt_optimizer_args *args);
    /* part.grad := the direction of the step; the states move */
    dt_status (*direct)(dt_device *device, dt_optimizer_part *part,
                        const dt_optimizer_factors *factors, dt_error *err);
    /* matrix F32 (rows, columns), in place; products in `dtype`, F32 or BF16; `work`: device memory,
     * dt_whole_matrices' work_bytes of it */
    dt_status (*shape)(dt_device *device, const dt_optimizer_options *options, dt_tensor *matrix,
                       dt_dtype dtype, void *work, dt_error *err);
    /* part.param by part.grad, which is what `shape` made of it */
    dt_status (*apply)(dt_device *device, dt_optimizer_part *part,
                       const dt_optimizer_factors *factors, dt_error *err);
} dt_optimizer_matrices;

typedef struct dt_optimizer {
    /* MUST: what does not depend on the element */
    void (*factors)(dt_optimizer_factors *out, const dt_optimizer_args *args);
    /* MUST: queued on the device; `factors` lie there */
    dt_status (*step)(dt_device *device, dt_optimizer_part *part,
                      const dt_optimizer_factors *factors, dt_error *err);
    /* MAY: for hidden matrices, in place of the two above */
    const dt_optimizer_matrices *matrices;
} dt_optimizer;

#define DT_OPTIMIZER_DECLARE(KIND, NAME, ...) extern const dt_optimizer dt_optimizer_##NAME;
DT_OPTIMIZERS(DT_OPTIMIZER_DECLARE)

const dt_optimizer *dt_optimizer_of(dt_optimizer_kind kind);

#ifdef __cplusplus
}
#endif
#endif
