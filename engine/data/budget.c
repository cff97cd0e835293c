#include "engine/data/budget.h"

/* Steps from position `at` to the end of the epochs; negative if `at` is past it. */
static int64_t rest_steps(const dt_sampler *sampler, int64_t epochs, int64_t step_samples,
                          const dt_budget_place *at)
{
    /* samples seen, counted as steps of one sample */
    int64_t seen = dt_sampler_epoch_steps(sampler, at->epoch, 1) + at->sample;
    int64_t left;

    if (sampler->tail == DT_TAIL_DROP) {
        /* samples left in this epoch */
        left = dt_sampler_epoch_steps(sampler, at->epoch + 1, 1) - seen;
        return left / step_samples + dt_sampler_epoch_steps(sampler, epochs, step_samples) -
               dt_sampler_epoch_steps(sampler, at->epoch + 1, step_samples);
    }
    left = dt_sampler_epoch_steps(sampler, epochs, 1) - seen;
    return (left > 0 ? left + step_samples - 1 : left) / step_samples;
}

static int64_t epochs_steps(const dt_sampler *sampler, int64_t epochs, int64_t step_samples,
                            const dt_budget_place *at)
{
    int64_t rest;

    if (at == NULL)
        return dt_sampler_epoch_steps(sampler, epochs, step_samples);
    rest = rest_steps(sampler, epochs, step_samples, at);
    return at->step + (rest > 0 ? rest : 0);
}

int64_t dt_budget_steps(const dt_recipe *recipe, const dt_sampler *sampler, int64_t step_samples,
                        const dt_budget_place *at)
{
    int64_t steps = recipe->schedule.steps, by_epochs;

    if (recipe->schedule.epochs == 0)
        return steps;
    by_epochs = epochs_steps(sampler, recipe->schedule.epochs, step_samples, at);
    return steps > 0 && steps < by_epochs ? steps : by_epochs;
}
