/* optimizer: the update of each optimizer in recipes/fields/optimizer_table.h, which explains how to add
 * one, and what the files of the optimizers share.
 *
 * A strategy calls `step` on every part of the parameters that it holds, with the factors that
 * `factors` computed from the recipe and the step number. Only the factors change from step to
 * step, and they are in device memory: a step can be recorded and replayed.
 */
#ifndef DT_ENGINE_OPTIM_OPTIMIZER_H
#define DT_ENGINE_OPTIM_OPTIMIZER_H

#include "engine/device/device.h"
#include "engine/ops/ops.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a step's factors are computed from; g = grad * grad_scale in all formulas. */
typedef struct dt_optimizer_args {
    dt_optimizer_options options;
    double lr;         /* learning rate of this step, from the schedule */
    int64_t step;      /* number of the step, from 1 */
    double grad_scale; /* clip factor times the factor that undoes the loss scale */
} dt_optimizer_args;

/* Groups of parameters with separate factors. */
typedef enum dt_optimizer_group {
    DT_GROUP_KEPT, /* parameters without weight decay */
    DT_GROUP_DECAYED,
    DT_GROUP_MATRIX, /* updated as a whole; only if the optimizer has `matrices` */
    DT_OPTIMIZER_GROUPS
} dt_optimizer_group;

/* A contiguous range of parameters with the same update; all F32 (n) except `copy`. */
typedef struct dt_optimizer_part {
    dt_tensor param, grad;
    dt_tensor copy; /* := param in the compute type; without data: none */
    dt_tensor state[DT_OPTIMIZER_STATES];
    int states; /* number of states: dt_optimizer_states */
} dt_optimizer_part;

/* Update of hidden matrices by an optimizer that needs them whole: `direct` on the parts that ranks
 * hold, `shape` on whole directions, wherever they were assembled, and `apply` on the parts again.
 * All are queued on the device. */
typedef struct dt_optimizer_matrices {
    void (*factors)(dt_optimizer_factors *out, const dt_optimizer_args *args);
    /* part.grad := the direction of the step; updates the states */
    dt_status (*direct)(dt_device *device, dt_optimizer_part *part,
                        const dt_optimizer_factors *factors, dt_error *err);
    /* matrix F32 (rows, columns), in place; products in `dtype`, F32 or BF16; `work`: device memory
     * of dt_whole_matrices' work_bytes */
    dt_status (*shape)(dt_device *device, const dt_optimizer_options *options, dt_tensor *matrix,
                       dt_dtype dtype, void *work, dt_error *err);
    /* updates part.param by part.grad, which holds the result of `shape` */
    dt_status (*apply)(dt_device *device, dt_optimizer_part *part,
                       const dt_optimizer_factors *factors, dt_error *err);
} dt_optimizer_matrices;

typedef struct dt_optimizer {
    /* MUST: compute the factors, which do not depend on the element */
    void (*factors)(dt_optimizer_factors *out, const dt_optimizer_args *args);
    /* MUST: queue the update on the device; `factors` are in device memory */
    dt_status (*step)(dt_device *device, dt_optimizer_part *part,
                      const dt_optimizer_factors *factors, dt_error *err);
    /* MAY: replaces the two functions above for hidden matrices */
    const dt_optimizer_matrices *matrices;
} dt_optimizer;

#define DT_OPTIMIZER_DECLARE(KIND, NAME, ...) extern const dt_optimizer dt_optimizer_##NAME;
DT_OPTIMIZERS(DT_OPTIMIZER_DECLARE)

const dt_optimizer *dt_optimizer_of(dt_optimizer_kind kind);

/* optim_int: declares what the files of the optimizers share. */

/* Update every element of the part by one rule. */
dt_status dt_optimizer_step_by(dt_optimizer_rule rule, dt_device *device, dt_optimizer_part *part,
                               const dt_optimizer_factors *factors, dt_error *err);

/* adamw.c: for optimizers that update some parameters by AdamW. */
void dt_adamw_factors(dt_optimizer_factors *out, const dt_optimizer_args *args);
dt_status dt_adamw_step(dt_device *device, dt_optimizer_part *part,
                        const dt_optimizer_factors *factors, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
