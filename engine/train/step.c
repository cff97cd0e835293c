#include "engine/train/step.h"

#include <math.h>

#include "base/clock.h"
#include "engine/channel/activity.h"
#include "engine/channel/stop.h"
#include "engine/optim/clip.h"
#include "engine/optim/schedule.h"

dt_status dt_step_begin(dt_train_session *session, dt_step *out, dt_error *err)
{
    int64_t samples = dt_train_session_samples_per_step(session);
    int64_t valid_targets = dt_sampler_valid_targets(&session->sampler, 0, samples);

    if (valid_targets == 0)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "step %lld: all %lld tokens are end-of-document tokens: check 'data.end_of_text'",
            (long long)session->step + 1, (long long)(samples * session->recipe->batch.tokens));
    dt_activity_step(session->step + 1);
    *out = (dt_step){.learning_rate = dt_schedule_lr(session->recipe, session->step),
                     .items = dt_train_session_items(session, valid_targets),
                     .valid_targets = (double)valid_targets};
    return DT_OK;
}

dt_status dt_step_forward_backward(dt_train_session *session, dt_step *step, dt_error *err)
{
    const dt_strategy *strategy = session->state.strategy;
    dt_strategy_state *state = &session->state;
    int64_t micro_steps = session->recipe->batch.accumulate;
    double loss_scale = session->scaler.scale / step->valid_targets, start, micro_sum;
    dt_status st = DT_OK;

    DT_TRY(strategy->step_begin(state, micro_steps, err));
    for (int64_t m = 0; m < micro_steps; m++) {
        start = dt_clock_monotonic_seconds();
        dt_activity_micro_step(m + 1, micro_steps);
        DT_TRY(dt_train_session_fill(session, m, err));
        step->host_overhead_seconds += dt_clock_monotonic_seconds() - start;
        DT_TRY(strategy->forward_backward(state, &session->batch, loss_scale, &micro_sum, err));
        step->loss_sum += micro_sum;
    }
    DT_TRY(strategy->grads_finish(state, err));
    DT_TRY(strategy->grad_norm(state, &step->gradient_norm, err));
out:
    return st;
}

dt_status dt_step_agree(dt_train_session *session, dt_step *step, dt_error *err)
{
    double limit = session->recipe->time_limit_seconds;
    bool over = limit > 0 && dt_clock_monotonic_seconds() - session->start_seconds >= limit;
    double sums[4] = {dt_mesh_term(&session->mesh, DT_MESH_DATA, step->loss_sum),
                      step->gradient_norm, dt_stop_asked() ? 1 : 0, over ? 1 : 0};
    dt_status st = DT_OK;

    DT_TRY(session->comm.all_reduce_f64(&session->comm, sums, 4, err));
    step->loss_sum = sums[0];
    step->mean_norm = sums[1] / (double)session->mesh.world.size;
    step->stop = sums[2] > 0;
    step->time_over = sums[3] > 0;
    step->scale = session->scaler.scale;
    DT_TRY(dt_scaler_step(&session->scaler, step->mean_norm, &step->skipped, err));
out:
    return st;
}

static dt_status check(const dt_train_session *session, double loss, double norm, double mean_norm,
                       dt_error *err)
{
    if (!isfinite(loss) || !isfinite(mean_norm))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "step %lld: the loss is %g and the gradient norm %g: training has diverged "
                       "(try a lower 'optimizer.lr', more 'schedule.warmup_steps' or %s)",
                       (long long)session->step + 1, loss, mean_norm,
                       session->recipe->clip > 0 ? "a smaller 'clip'" : "a 'clip' of 1");
    if (fabs(norm - mean_norm) > 1e-6 * mean_norm)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "step %lld: rank %lld has the gradient norm %.9g, the mean over the ranks "
                       "is %.9g: the ranks have drifted apart (resume from the last checkpoint)",
                       (long long)session->step + 1, (long long)session->mesh.world.rank, norm,
                       mean_norm);
    return DT_OK;
}

dt_status dt_step_update(dt_train_session *session, dt_step *step, dt_error *err)
{
    const dt_recipe *recipe = session->recipe;
    double loss = step->loss_sum / step->valid_targets;
    dt_optimizer_args args = {
        .options = recipe->optimizer, .lr = step->learning_rate, .step = session->step + 1};
    dt_status st = DT_OK;

    step->gradient_norm /= step->scale;
    DT_TRY(check(session, loss, step->gradient_norm, step->mean_norm / step->scale, err));
    args.grad_scale = dt_clip_factor(step->gradient_norm, recipe->clip) / step->scale;
    DT_TRY(session->state.strategy->update(&session->state, &args, err));
    DT_TRY(session->device.synchronize(&session->device, err));
    session->loss = loss;
    session->step++;
out:
    return st;
}

dt_status dt_step_end(dt_train_session *session, dt_error *err)
{
    return dt_sampler_advance(&session->sampler, dt_train_session_samples_per_step(session), err);
}
