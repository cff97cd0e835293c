/* budget: how many steps a run has, where the recipe says it in epochs.
 *
 * Rule       schedule.steps, or as many as schedule.epochs take (data.h), or the lower of the two
 * Resumed    the steps done, and as many as the rest of the epochs takes from where the sampler
 *            stands: the same number as before where a step has as many samples as it had. Else the
 *            schedule is stretched over the new one, so its learning rates are those of neither run
 *            alone
 * Skipped    steps of fp16 (optim/scaler.h) use samples up without counting: each takes a step off
 *            what the epochs give, and nothing off schedule.steps. An epoch is a pass over the
 * data, and the run ends with the last one
 */
#ifndef DT_ENGINE_DATA_BUDGET_H
#define DT_ENGINE_DATA_BUDGET_H

#include "engine/data/data.h"

/* How far a run has come: steps done, and where the sampler stands. */
typedef struct dt_budget_place {
    int64_t step, epoch, sample;
} dt_budget_place;

/* Of the whole run, from what is known at `at`; NULL: at its start. */
int64_t dt_budget_steps(const dt_recipe *recipe, const dt_sampler *sampler, int64_t step_samples,
                        const dt_budget_place *at);

#endif
