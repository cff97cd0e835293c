/* How many steps a run will have: what the engine counts when it is ready, counted before. */
#include "runner/cli/preflight.h"

#include "base/banned.h"

int64_t dt_preflight_samples(const dt_preflight *flight)
{
    const dt_plan *plan = &flight->plan;
    int64_t replicas = 0;

    for (int64_t r = 0; r < plan->world_size; r++)
        replicas += plan->ranks[r].replicas;
    return replicas * plan->recipe.batch.sequences * plan->recipe.batch.accumulate;
}

int64_t dt_preflight_steps(const dt_preflight *flight, const dt_budget_place *at)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    dt_sampler sampler;

    if (recipe->schedule.epochs == 0)
        return recipe->schedule.steps;
    if (flight->data.train_tokens <= recipe->batch.tokens)
        return 0;
    dt_sampler_count(&sampler, flight->data.train_tokens, recipe->batch.tokens,
                     (uint64_t)recipe->seed);
    sampler.tail = recipe->data.tail;
    return dt_budget_steps(recipe, &sampler, dt_preflight_samples(flight), at);
}
