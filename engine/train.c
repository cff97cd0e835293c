#define _GNU_SOURCE
#include "engine/train.h"

#include <math.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/evaluate.h"
#include "engine/optim/clip.h"
#include "engine/optim/schedule.h"
#include "engine/report.h"
#include "engine/session.h"
#include "recipes/fields.h"

#include "base/banned.h"

/* --- one step */

typedef struct step_result {
    double learning_rate, gradient_norm;
    bool stop; /* a rank was asked to stop */
} step_result;

static bool asked_to_stop(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1;
}

static dt_status fill_batch(dt_session *session, int64_t micro_step, dt_error *err)
{
    int64_t sequences = session->batch.sequences;
    dt_status st = DT_OK;

    DT_TRY(dt_sampler_fill(&session->sampler, session->inputs, session->targets,
                           (micro_step * session->world_size + session->rank) * sequences,
                           sequences, err));
    session->batch.step = (uint32_t)session->step;
    session->batch.micro_step = (uint32_t)micro_step;
out:
    return st;
}

/* One small sum over the ranks: the loss, who wants to stop, and the norms, which must agree. */
static dt_status agree(dt_session *session, double loss_sum, step_result *result, dt_error *err)
{
    double sums[3] = {loss_sum, asked_to_stop() ? 1 : 0, result->gradient_norm};
    double norm = result->gradient_norm, mean_norm;
    dt_status st = DT_OK;

    DT_TRY(session->comm.all_reduce_f64(&session->comm, sums, 3, err));
    session->loss =
        sums[0] / (double)(dt_session_samples_per_step(session) * session->recipe->batch.tokens);
    result->stop = sums[1] > 0;
    mean_norm = sums[2] / (double)session->world_size;
    if (!isfinite(session->loss) || !isfinite(mean_norm))
        DT_THROW(err, DT_ERR_RECIPE,
                 "step %lld: the loss is %g and the gradient norm %g: training has diverged (try "
                 "a lower 'optimizer.lr', more 'schedule.warmup_steps' or a smaller 'clip')",
                 (long long)session->step + 1, session->loss, mean_norm);
    if (fabs(norm - mean_norm) > 1e-6 * mean_norm)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "step %lld: rank %lld has the gradient norm %.9g, the mean over the ranks is "
                 "%.9g: the ranks have drifted apart (resume from the last checkpoint)",
                 (long long)session->step + 1, (long long)session->rank, norm, mean_norm);
out:
    return st;
}

static dt_status run_step(dt_session *session, step_result *result, dt_error *err)
{
    const dt_recipe *recipe = session->recipe;
    const dt_strategy *strategy = session->state.strategy;
    dt_strategy_state *state = &session->state;
    int64_t samples = dt_session_samples_per_step(session);
    double loss_scale = 1.0 / (double)(samples * recipe->batch.tokens); /* all targets count */
    double loss_sum = 0, micro_sum;
    dt_optimizer_args args;
    dt_status st = DT_OK;

    result->learning_rate = dt_schedule_lr(recipe, session->step);
    DT_TRY(strategy->step_begin(state, recipe->batch.accumulate, err));
    for (int64_t micro_step = 0; micro_step < recipe->batch.accumulate; micro_step++) {
        DT_TRY(fill_batch(session, micro_step, err));
        DT_TRY(strategy->forward_backward(state, &session->batch, loss_scale, &micro_sum, err));
        loss_sum += micro_sum;
    }
    DT_TRY(strategy->grads_finish(state, err));
    DT_TRY(strategy->grad_norm(state, &result->gradient_norm, err));
    DT_TRY(agree(session, loss_sum, result, err));
    args = (dt_optimizer_args){.kind = recipe->optimizer.kind,
                               .variant = recipe->optimizer.variant,
                               .momentum = recipe->optimizer.momentum,
                               .nesterov = recipe->optimizer.nesterov,
                               .lr = result->learning_rate,
                               .beta1 = recipe->optimizer.beta1,
                               .beta2 = recipe->optimizer.beta2,
                               .eps = recipe->optimizer.eps,
                               .weight_decay = recipe->optimizer.weight_decay,
                               .step = session->step + 1,
                               .grad_scale = dt_clip_factor(result->gradient_norm, recipe->clip)};
    DT_TRY(strategy->update(state, &args, err));
    DT_TRY(session->device.synchronize(&session->device, err));
    DT_TRY(dt_sampler_advance(&session->sampler, samples, err));
    session->step++;
out:
    return st;
}

/* --- between steps */

static dt_status evaluate(dt_session *session, dt_error *err)
{
    bool evaluated;
    dt_status st = DT_OK;

    DT_TRY(dt_report_phase(session, "evaluate", err));
    DT_TRY(dt_evaluate(session, &evaluated, err));
    if (evaluated)
        DT_TRY(dt_report_valid_loss(session, err));
    DT_TRY(dt_report_phase(session, "train", err));
out:
    return st;
}

static dt_status write_checkpoint(dt_session *session, dt_error *err)
{
    const dt_plan *plan = session->plan;
    double start = dt_clock_monotonic_seconds();
    dt_error unpruned = DT_ERROR_INIT;
    const char *directory;
    int64_t bytes;
    char digest[33];
    dt_status st = DT_OK;
    dt_checkpoint_info info = {
        .run = plan->run,
        .attempt = plan->attempt,
        .step = session->step,
        .epoch = session->sampler.epoch,
        .sample = session->sampler.sample,
        .loss = session->loss,
        .valid_loss = session->valid_loss,
        .recipe = dt_recipe_to_json(session->recipe),
        .tokenizer = dt_tokenizer_to_json(dt_dataset_tokenizer(session->dataset)),
    };

    dt_arena_reset(&session->arena);
    DT_TRY(dt_checkpoint_save(plan->directory, &info, &session->state, &session->arena, &directory,
                              &bytes, digest, err));
    DT_TRY(dt_report_checkpoint(session, directory, bytes, digest,
                                dt_clock_monotonic_seconds() - start, err));
    if (session->rank == 0 &&
        dt_checkpoint_prune(plan->directory, session->recipe->checkpoint.keep, &unpruned) != DT_OK)
        dt_log_warn("step %lld: old checkpoints stay: %s", (long long)session->step,
                    unpruned.message);
out:
    json_decref(info.recipe);
    json_decref(info.tokenizer);
    return st;
}

/* A save that fails is said and survived; what it cannot survive is the loss of a peer. */
static dt_status save(dt_session *session, bool last, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;

    DT_TRY(dt_report_phase(session, "save", err));
    if (write_checkpoint(session, &problem) != DT_OK) {
        if (last || problem.code == DT_ERR_COMM || problem.code == DT_ERR_PEER)
            DT_THROW(err, problem.code, "step %lld: no checkpoint: %s", (long long)session->step,
                     problem.message);
        dt_log_error("step %lld: no checkpoint: %s", (long long)session->step, problem.message);
        DT_TRY(dt_report_checkpoint_failed(session, problem.message, err));
    }
    DT_TRY(dt_report_phase(session, "train", err));
out:
    return st;
}

static bool every(int64_t step, int64_t interval)
{
    return interval > 0 && step % interval == 0;
}

/* --- the loop */

static dt_status run(dt_session *session, dt_error *err)
{
    const dt_recipe *recipe = session->recipe;
    int64_t steps = recipe->schedule.steps;
    dt_interval interval = {0};
    step_result result = {0};
    bool last = false;
    dt_status st = DT_OK;

    DT_TRY(dt_report_start(session, err));
    DT_TRY(dt_report_phase(session, "train", err));
    while (session->step < steps && !last) {
        double start = dt_clock_monotonic_seconds();

        DT_TRY(run_step(session, &result, err));
        interval.steps++;
        interval.seconds += dt_clock_monotonic_seconds() - start;
        last = result.stop || session->step == steps;
        if (every(session->step, recipe->log.every) || session->step == 1 || last)
            DT_TRY(dt_report_step(session, result.learning_rate, result.gradient_norm, &interval,
                                  err));
        if (every(session->step, recipe->evaluate.every) || session->step == steps)
            DT_TRY(evaluate(session, err));
        if (every(session->step, recipe->checkpoint.every) || last)
            DT_TRY(save(session, last, err));
    }
    DT_TRY(session->comm.barrier(&session->comm, err));
    DT_TRY(dt_report_finished(session, session->step >= steps ? "steps" : "stopped", err));
out:
    return st;
}

dt_status dt_train(const dt_plan *plan, int64_t rank, dt_events *events, dt_error *err)
{
    dt_error unsent = DT_ERROR_INIT;
    dt_session session;
    dt_status st = DT_OK;

    DT_TRY(dt_session_open(&session, plan, rank, events, err));
    DT_TRY(run(&session, err));
out:
    /* Said before the session is closed, which may have to wait for a collective under way. */
    if (st != DT_OK && dt_report_failed(events, err, &unsent) != DT_OK)
        dt_log_error("the failure could not be reported: %s", unsent.message);
    dt_session_close(&session);
    return st;
}
