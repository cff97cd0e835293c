/* schedule: the learning rate of a step.
 *
 * Pure function; steps count from 0. Warm-up is linear from warmup_init_lr to lr over
 * warmup_steps. Cosine (Loshchilov and Hutter 2016, fairseq's periods): after warm-up,
 *   lr(t) = min + (max - min)/2 * (1 + cos(pi * t_i / T_i)),
 * t_i steps into period i of length T_i = period * mult^i, both ends multiplied by shrink^i;
 * past the last step it stays at what the formula gives.
 */
#ifndef DT_ENGINE_SCHEDULE_H
#define DT_ENGINE_SCHEDULE_H

#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

double dt_schedule_lr(const dt_recipe *recipe, int64_t step);

#ifdef __cplusplus
}
#endif
#endif
