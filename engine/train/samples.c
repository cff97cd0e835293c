/* samples: which of them a rank takes, and how many steps they make. */
#include "engine/data/budget.h"
#include "engine/train/session.h"

#include "base/banned.h"

void dt_train_session_inputs(const dt_train_session *session, void *out[DT_INPUTS_MAX])
{
    for (int i = 0; i < DT_INPUTS_MAX; i++)
        out[i] = session->batch.inputs[i].data;
}

int64_t dt_train_session_samples_per_step(const dt_train_session *session)
{
    const dt_recipe *recipe = session->recipe;

    return recipe->batch.sequences * session->replicas * session->mesh.data.size *
           recipe->batch.accumulate;
}

int64_t dt_train_session_first_sample(const dt_train_session *session, int64_t micro_step)
{
    const dt_group *data = &session->mesh.data;

    return (micro_step * data->size + data->rank) * session->batch.samples;
}

void dt_train_session_count_steps(dt_train_session *session)
{
    dt_budget_place place = {session->step, session->sampler.epoch, session->sampler.sample};

    session->resolved.schedule.steps =
        dt_budget_steps(&session->plan->recipe, &session->sampler,
                        dt_train_session_samples_per_step(session), &place);
}

bool dt_train_session_ends_epoch(const dt_train_session *session, int64_t *seen, int64_t every)
{
    int64_t before = *seen, now = session->sampler.epoch;

    *seen = now;
    return every > 0 && now / every > before / every;
}
