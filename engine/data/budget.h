/* budget: computes the number of steps of a run whose recipe gives epochs.
 *
 * Rule       schedule.steps, or the steps of schedule.epochs (data.h), or the lower of the two
 * Resumed    the completed steps, plus the steps for the rest of the epochs from the sampler's position:
 *            the same total as before if the samples per step have not changed. Otherwise the
 *            schedule is stretched to the new total, so its learning rates equal those of neither
 *            the old nor a new run
 * Skipped    fp16 steps with an overflow (optim/scaler.h) use samples without counting as steps: each
 *            reduces the steps from epochs by one, but not schedule.steps. An epoch is a pass over the
 *            data, and the run ends with the last one
 */
#ifndef DT_ENGINE_DATA_BUDGET_H
#define DT_ENGINE_DATA_BUDGET_H

#include "engine/data/data.h"

/* Position of a run: completed steps, and the sampler's position. */
typedef struct dt_budget_place {
    int64_t step, epoch, sample;
} dt_budget_place;

/* Total steps of the run, as known at position `at`; NULL: at its start. */
int64_t dt_budget_steps(const dt_recipe *recipe, const dt_sampler *sampler, int64_t step_samples,
                        const dt_budget_place *at);

#endif
