/* samples: selects the samples of each rank and counts the samples of a step. */
#include "engine/data/budget.h"
#include "engine/train/session.h"

static void inputs_of(const dt_micro_batch *batch, void *out[DT_INPUTS_MAX])
{
    for (int i = 0; i < DT_INPUTS_MAX; i++)
        out[i] = batch->inputs[i].data;
}

/* Number of samples of this rank in a micro-step. */
static int64_t own_samples(const dt_train_session *session)
{
    return session->parts != NULL ? session->replicas : session->batch.samples;
}

/* Set the tensor dimensions of a batch of sentence pairs to the widths of its longest sentences. */
static void shape_part(dt_micro_batch *part, const dt_pair_shape *shape)
{
    part->samples = shape->samples;
    part->inputs[0].dim[0] = part->inputs[1].dim[0] = part->inputs[2].dim[0] = shape->samples;
    part->inputs[0].dim[1] = shape->source;
    part->inputs[1].dim[1] = part->inputs[2].dim[1] = shape->target;
}

dt_status dt_train_session_fill(dt_train_session *session, int64_t micro_step, dt_error *err)
{
    int64_t first = dt_train_session_first_sample(session, micro_step);
    void *inputs[DT_INPUTS_MAX];
    dt_status st = DT_OK;

    session->batch.step = (uint32_t)session->step;
    session->batch.micro_step = (uint32_t)micro_step;
    if (session->parts == NULL) {
        inputs_of(&session->batch, inputs);
        return dt_sampler_fill(&session->sampler, inputs, first, session->batch.samples, err);
    }
    for (int64_t r = 0; r < session->replicas; r++) {
        dt_pair_shape shape;

        inputs_of(&session->parts[r], inputs);
        DT_TRY(dt_sampler_fill_group(&session->sampler, &shape, inputs, first + r, err));
        shape_part(&session->parts[r], &shape);
    }
out:
    return st;
}

int64_t dt_train_session_valid_per_pass(const dt_train_session *session)
{
    return own_samples(session) * session->mesh.data.size;
}

/* evaluate.sequences counts sentence pairs, and each batch holds several of them: convert to
 * batches. */
int64_t dt_train_session_valid_count(const dt_train_session *session)
{
    int64_t all = dt_validation_count(session->dataset, session->recipe->batch.tokens);
    int64_t wanted = session->recipe->evaluate.sequences, pairs;

    if (session->parts != NULL && wanted > 0) {
        pairs = dt_dataset_valid_pairs(session->dataset);
        wanted = wanted < pairs ? (wanted * all + pairs - 1) / pairs : all;
    }
    return wanted > 0 && wanted < all ? wanted : all;
}

dt_status dt_train_session_fill_valid(dt_train_session *session, int64_t first, dt_error *err)
{
    int64_t all = dt_validation_count(session->dataset, session->recipe->batch.tokens);
    int64_t count = dt_train_session_valid_count(session);
    void *inputs[DT_INPUTS_MAX];
    dt_status st = DT_OK;

    for (int64_t i = 0; i < own_samples(session); i++) {
        int64_t turn = first + i * session->mesh.data.size + session->mesh.data.rank;
        int64_t index = turn < count ? turn * all / count : -1;
        dt_pair_shape shape;

        if (session->parts != NULL) {
            inputs_of(&session->parts[i], inputs);
            DT_TRY(dt_validation_fill_group(session->dataset, index, &shape, inputs, err));
            shape_part(&session->parts[i], &shape);
        } else {
            inputs_of(&session->batch, inputs);
            DT_TRY(dt_validation_fill(session->dataset, session->recipe->batch.tokens, index,
                                      inputs, i, err));
        }
    }
out:
    return st;
}

int64_t dt_train_session_items(const dt_train_session *session, int64_t valid_targets)
{
    return session->parts != NULL
               ? valid_targets
               : dt_train_session_samples_per_step(session) * session->recipe->batch.tokens;
}

double dt_train_session_mean_items(const dt_train_session *session)
{
    double samples = (double)dt_train_session_samples_per_step(session);

    if (session->parts == NULL)
        return samples * (double)session->recipe->batch.tokens;
    return samples * (double)dt_dataset_train_tokens(session->dataset) /
           (double)dt_sampler_epoch_samples(&session->sampler);
}

int64_t dt_train_session_samples_per_step(const dt_train_session *session)
{
    const dt_recipe *recipe = session->recipe;

    return (dt_dataset_has_pairs(session->dataset) ? 1 : recipe->batch.sequences) *
           session->replicas * session->mesh.data.size * recipe->batch.accumulate;
}

int64_t dt_train_session_first_sample(const dt_train_session *session, int64_t micro_step)
{
    const dt_group *data = &session->mesh.data;

    return (micro_step * data->size + data->rank) * own_samples(session);
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
