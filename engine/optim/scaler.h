/* scaler: adjusts the loss scale of fp16 (Micikevicius et al. 2017, "Mixed Precision Training").
 *
 * Purpose    fp16 gradients underflow below 6e-8: the loss is multiplied before the backward pass
 *            and the gradients divided after it
 * Rule       a norm that is not finite: the step is skipped and the scale halves; `window` clean steps
 *            in a row: it doubles. Below the floor the run fails. The norm is over all ranks, so
 *            all of them skip the same steps without communication
 * Skipped    steps advance neither step nor schedule, but advance the sampler: the same samples would
 *            overflow again
 * Precision  for other precisions the scale is 1 and no step is skipped
 */
#ifndef DT_ENGINE_SCALER_H
#define DT_ENGINE_SCALER_H

#include "base/error.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_scaler {
    bool on;
    double scale, floor;
    int64_t window;
    int64_t clean_steps;   /* steps since the scale last changed */
    int64_t skipped_steps; /* skipped steps of the whole run */
} dt_scaler;

void dt_scaler_init(dt_scaler *out, const dt_recipe *recipe);

/* Call after a backward pass with the `norm` of the scaled gradients. *skip: discard the step.
 * DT_ERR_RECIPE below the floor. */
dt_status dt_scaler_step(dt_scaler *scaler, double norm, bool *skip, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
