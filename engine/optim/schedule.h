/* schedule: computes the learning rate of a step.
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
#ifndef DT_ENGINE_SCHEDULE_H
#define DT_ENGINE_SCHEDULE_H

#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

double dt_schedule_lr(const dt_recipe *recipe, int64_t step);

#ifdef __cplusplus
}
#endif
#endif
