/* budget: how many steps a run has, where the recipe says it in epochs.
 *
 * Rule       schedule.steps, or as many as schedule.epochs take (data.h), or the lower of the two
 * Resumed    the steps done, and as many as the rest of the epochs takes from where the sampler
 *            stands: the same number as before where a step has as many samples as it had. Else the
 *            schedule is stretched over the new one, so its learning rates are those of neither run
 *            alone
 * Skipped    steps of fp16 (optim/scaler.h) use samples up without counting, and are made up for:
 *            the run then goes on a little into the next epoch
 */
#ifndef DT_ENGINE_BUDGET_H
#define DT_ENGINE_BUDGET_H

#include "engine/checkpoint/checkpoint.h"
#include "engine/data/data.h"

/* `resumed`: NULL for a fresh start. */
int64_t dt_budget_steps(const dt_recipe *recipe, const dt_sampler *sampler, int64_t step_samples,
                        const dt_checkpoint_info *resumed);

#endif
