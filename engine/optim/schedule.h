/* schedule: the numbers that scale a step: the learning rate, the factor that clips the gradient norm, and
 * the loss scale of fp16.
 *
 * A pure function; steps count from 0, and recipe->schedule.steps must be above 0 (for epochs, the caller
 * has set it). With lr = optimizer.lr, min = min_lr, W = warmup_steps, S = steps:
 *
 *   warm-up       t < W, all kinds: init + (lr - init) * t / W, init = warmup_init_lr
 *   cosine        min' + (lr' - min')/2 * (1 + cos(pi * t_i / T_i)), t_i steps into period i, which
 *                 has T_i = period * mult^i; lr' = lr * shrink^i and min' = min * shrink^i; period
 *                 is S - W by default (Loshchilov and Hutter 2016; fairseq's cosine)
 *   inverse_sqrt  max(min, lr * sqrt(w / max(t, w))), w = max(W, 1) (Vaswani et al. 2017;
 *                 fairseq's inverse_sqrt, which has no minimum)
 *   polynomial    min + (lr - min) * (1 - (t - W)/(S - W))^power (fairseq's polynomial_decay)
 *   linear        the same with power 1
 *   constant      lr
 *   warmup_stable_decay  lr up to S - D, then min + (lr - min) * (S - t)/D, D = decay_steps, or a
 *                 tenth of S if that is 0; at most S - W (Hu et al. 2024, linear)
 * After the last step cosine, inverse_sqrt and constant continue; the others stay at min.
 */
#ifndef DT_ENGINE_OPTIM_SCHEDULE_H
#define DT_ENGINE_OPTIM_SCHEDULE_H

#include "base/error.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

double dt_schedule_lr(const dt_recipe *recipe, int64_t step);

/* clip: computes the factor that clips the gradient norm.
 *
 * Formula  min(1, max_norm / (norm + 1e-6)), as in PyTorch's clip_grad_norm_; a max_norm of 0 means
 *          no clipping. For a norm of NaN the factor is NaN, so that the failure is noticed.
 */

double dt_clip_factor(double norm, double max_norm);

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
