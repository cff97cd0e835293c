#include "engine/budget.h"

#include "base/banned.h"

static int64_t epochs_steps(const dt_sampler *sampler, int64_t epochs, int64_t step_samples,
                            const dt_checkpoint_info *resumed)
{
    int64_t all, seen;

    if (resumed == NULL || resumed->step_samples == 0 || resumed->step_samples == step_samples)
        return dt_sampler_epoch_steps(sampler, epochs, step_samples);
    all = dt_sampler_epoch_steps(sampler, epochs, 1);
    seen = dt_sampler_epoch_steps(sampler, resumed->epoch, 1) + resumed->sample;
    if (seen >= all)
        return resumed->step;
    return resumed->step + (all - seen + step_samples - 1) / step_samples;
}

int64_t dt_budget_steps(const dt_recipe *recipe, const dt_sampler *sampler, int64_t step_samples,
                        const dt_checkpoint_info *resumed)
{
    int64_t steps = recipe->schedule.steps, by_epochs;

    if (recipe->schedule.epochs == 0)
        return steps;
    by_epochs = epochs_steps(sampler, recipe->schedule.epochs, step_samples, resumed);
    return steps > 0 && steps < by_epochs ? steps : by_epochs;
}
