/* preflight_steps: counts the steps of a run as the engine does, before it starts. */
#include "engine/data/stream.h"
#include "recipes/architecture/architecture.h"
#include "runner/launch/preflight.h"

int64_t dt_preflight_replicas(const dt_preflight *flight)
{
    return dt_plan_replicas(&flight->plan);
}

static bool has_pairs(const dt_preflight *flight)
{
    return flight->plan.recipe.batch.max_tokens > 0;
}

int64_t dt_preflight_samples(const dt_preflight *flight)
{
    const dt_recipe *recipe = &flight->plan.recipe;

    return dt_preflight_replicas(flight) * (has_pairs(flight) ? 1 : recipe->batch.sequences) *
           recipe->batch.accumulate;
}

int64_t dt_preflight_items(const dt_preflight *flight)
{
    int64_t samples = dt_preflight_samples(flight), groups = flight->data.train_groups;

    if (!has_pairs(flight))
        return samples * flight->plan.recipe.batch.tokens;
    return groups > 0 ? samples * flight->data.train_tokens / groups
                      : samples * flight->plan.recipe.batch.max_tokens;
}

double dt_preflight_padding(const dt_preflight *flight)
{
    double places = (double)flight->data.train_packs * (double)flight->plan.recipe.batch.tokens;

    return places > 0 ? 1 - (double)flight->data.train_tokens / places : 0;
}

int64_t dt_preflight_mixture_samples(const dt_preflight *flight)
{
    int64_t samples = 0;

    for (int64_t i = 0; i < flight->plan.recipe.data.mixture.count; i++) {
        if (flight->data.parts[i].samples == 0)
            return 0;
        samples += flight->data.parts[i].samples;
    }
    return samples;
}

/* Sets up the sampler of the plan's recipe; returns false if the data's tokens are unknown. */
static bool count_in(dt_sampler *out, const dt_preflight *flight)
{
    const dt_recipe *recipe = &flight->plan.recipe;

    int64_t ahead = dt_architecture_find(recipe->model.kind)->reads_rows ? 0 : 1;

    if (has_pairs(flight)) {
        dt_sampler_count_known(out, flight->data.train_groups, false, (uint64_t)recipe->seed);
        return flight->data.train_groups > 0;
    }
    if (recipe->data.mixture.count > 0) {
        int64_t samples = dt_preflight_mixture_samples(flight);

        dt_sampler_count_known(out, samples, true, (uint64_t)recipe->seed);
        return samples > 0;
    }
    if (dt_packs_fixed(recipe)) {
        dt_sampler_count_known(out, flight->data.train_packs, true, (uint64_t)recipe->seed);
        return flight->data.train_packs > 0;
    }
    if (flight->data.train_tokens < recipe->batch.tokens + ahead)
        return false;
    dt_sampler_count(out, flight->data.train_tokens, recipe->batch.tokens, ahead,
                     (uint64_t)recipe->seed);
    return true;
}

int64_t dt_preflight_steps(const dt_preflight *flight, const dt_budget_place *resume_place)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    dt_sampler sampler;

    if (recipe->schedule.epochs == 0)
        return recipe->schedule.steps;
    if (!count_in(&sampler, flight))
        return 0;
    sampler.tail = recipe->data.tail;
    return dt_budget_steps(recipe, &sampler, dt_preflight_samples(flight), resume_place);
}

dt_status dt_preflight_check_steps(dt_preflight *flight, dt_arena *arena, dt_error *err)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    int64_t steps = dt_preflight_steps(flight, NULL);
    dt_sampler sampler;
    dt_status st = DT_OK;

    if (count_in(&sampler, flight))
        DT_TRY(dt_sampler_set_tail(&sampler, recipe->data.tail, dt_preflight_samples(flight), err));
    if (steps > 0 && recipe->schedule.epochs > 0 && recipe->schedule.warmup_steps > steps)
        flight->warning =
            dt_arena_printf(arena,
                            "'schedule.warmup_steps' %lld is above the %lld steps of "
                            "'schedule.epochs' %lld: the run ends before the learning rate is "
                            "reached",
                            (long long)recipe->schedule.warmup_steps, (long long)steps,
                            (long long)recipe->schedule.epochs);
out:
    return st;
}
