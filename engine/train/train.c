/* train: the training loop of one rank, and the parts of a step. */
#include "engine/train/train.h"

#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/channel/activity.h"
#include "engine/channel/events.h"
#include "engine/optim/schedule.h"
#include "engine/stopwatch.h"
#include "engine/train/train_int.h"

/* --- the parts of a step */

/* Chooses the learning rate and counts the targets. */
static dt_status dt_step_begin(dt_train_session *session, dt_step *out, dt_error *err)
{
    int64_t samples = dt_train_session_samples_per_step(session);
    int place = dt_stopwatch_place(DT_PLACE_INPUT);
    double valid_targets = dt_sampler_valid_targets(&session->data.sampler, 0, samples);

    dt_stopwatch_place(place);

    if (valid_targets == 0)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "step %lld: all %lld tokens are end-of-document tokens: check 'data.end_of_text'",
            (long long)session->step + 1, (long long)(samples * session->recipe->batch.tokens));
    dt_activity_step(session->step + 1);
    *out = (dt_step){.learning_rate = dt_schedule_lr(session->recipe, session->step),
                     .items = dt_train_session_items(session, valid_targets),
                     .valid_targets = valid_targets};
    return DT_OK;
}

/* Adds the pairs of answers of the last pass. */
static void add_pairs(const dt_train_session *session, dt_step *step)
{
    const float *log_ratios;
    dt_pair_sums sums;

    if (session->model->config.decoder.beta == 0)
        return;
    dt_model_pairs(&sums, &log_ratios, session->model);
    step->margin += sums.margin;
    step->right += (double)sums.right;
}

/* Computes the gradients, by a forward and a backward pass of each micro-step, and reduces them over the
 * ranks. With fp16 the gradients, and their norm, are still scaled. */
static dt_status step_forward_backward(dt_train_session *session, dt_step *step, dt_error *err)
{
    const dt_strategy *strategy = session->state.strategy;
    dt_strategy_state *state = &session->state;
    int64_t micro_steps = session->recipe->batch.accumulate;
    double loss_scale = session->scaler.scale / step->valid_targets, start, micro_sum;
    dt_status st = DT_OK;

    dt_stopwatch_place(DT_PLACE_UPDATE); /* clears the gradients */
    dt_stopwatch_part(DT_PART_ARITHMETIC);
    DT_TRY(strategy->step_begin(state, micro_steps, err));
    for (int64_t m = 0; m < micro_steps; m++) {
        start = dt_clock_monotonic_seconds();
        dt_activity_micro_step(m + 1, micro_steps);
        dt_stopwatch_place(DT_PLACE_INPUT);
        dt_stopwatch_part(DT_PART_HOST);
        DT_TRY(dt_train_session_fill(session, m, err));
        dt_flip_input(session);
        dt_record_batch(session->record, &session->batch);
        step->host_overhead_seconds += dt_clock_monotonic_seconds() - start;
        dt_stopwatch_place(DT_PLACE_FORWARD);
        dt_stopwatch_part(DT_PART_ARITHMETIC);
        DT_TRY(strategy->forward_backward(state, &session->batch, loss_scale, &micro_sum, err));
        dt_record_losses(session->record, micro_sum);
        step->loss_sum += micro_sum;
        add_pairs(session, step);
    }
    dt_stopwatch_place(DT_PLACE_UPDATE);
    DT_TRY(strategy->grads_finish(state, err));
    DT_TRY(dt_flip_gradient(session, err));
    DT_TRY(strategy->grad_norm(state, &step->gradient_norm, err));
    DT_TRY(dt_record_gradients(session->record, step->gradient_norm, err));
out:
    return st;
}

/* Sums over the ranks: the loss, the number of ranks that want to end the run, and the gradient norms,
 * which must agree. Decides whether the step is skipped. */
static dt_status step_agree(dt_train_session *session, dt_step *step, dt_error *err)
{
    double limit = session->recipe->time_limit_seconds;
    bool over = limit > 0 && dt_clock_monotonic_seconds() - session->start_seconds >= limit;
    double sums[] = {dt_mesh_term(&session->mesh, DT_MESH_DATA, step->loss_sum),
                     step->gradient_norm,
                     dt_stop_asked() ? 1 : 0,
                     over ? 1 : 0,
                     dt_mesh_term(&session->mesh, DT_MESH_DATA, step->margin),
                     dt_mesh_term(&session->mesh, DT_MESH_DATA, step->right)};
    dt_status st = DT_OK;

    DT_TRY(session->comm.all_reduce_f64(&session->comm, sums, sizeof(sums) / sizeof(sums[0]), err));
    step->loss_sum = sums[0];
    step->mean_norm = sums[1] / (double)session->mesh.world.size;
    step->stop = sums[2] > 0;
    step->time_over = sums[3] > 0;
    step->margin = sums[4];
    step->right = sums[5];
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

/* Clips the gradients and updates the parameters. Sets session->loss and advances session->step. */
static dt_status step_update(dt_train_session *session, dt_step *step, dt_error *err)
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
    DT_TRY(dt_flip_state(session, err));
    DT_TRY(dt_record_update(session->record, loss, err));
out:
    return st;
}

/* Advances the sampler, also after a skipped step. */
static dt_status step_end(dt_train_session *session, dt_error *err)
{
    return dt_sampler_advance(&session->data.sampler, dt_train_session_samples_per_step(session),
                              err);
}

/* --- the loop */

static bool every(int64_t step, int64_t interval)
{
    return interval > 0 && step % interval == 0;
}

/* Notes in the checkpoint whether an evaluation was interrupted. A stop request during an evaluation ends the run. */
static void note_stopped(dt_train_session *session, unsigned which, bool stopped, bool *last)
{
    if (stopped)
        session->evaluation.missing |= which;
    else
        session->evaluation.missing &= ~which;
    *last = *last || stopped;
}

static dt_status evaluate(dt_train_session *session, bool *evaluated, bool *last, dt_error *err)
{
    bool stopped = false;
    dt_status st = DT_OK;

    dt_stopwatch_place(DT_PLACE_EVALUATE);
    DT_TRY(dt_report_phase(session, "evaluate", err));
    DT_TRY(dt_replicas_compare(session, err));
    DT_TRY(dt_evaluate(session, evaluated, &stopped, err));
    if (*evaluated)
        DT_TRY(dt_report_evaluation(session, err));
    DT_TRY(dt_report_phase(session, "train", err));
    dt_stopwatch_place(DT_PLACE_LOOP);
    note_stopped(session, DT_CHECKPOINT_LACKS_VALIDATION, stopped, last);
out:
    return st;
}

/* Whether 'evaluate.tasks' are due after the completed steps: every evaluate.tasks_every steps, or with each
 * validation, and at the end. */
static bool are_tasks_due(const dt_train_session *session, bool validation_due)
{
    const dt_recipe *recipe = session->recipe;

    if (session->evaluation.tasks == NULL || session->evaluation.tasks_step == session->step)
        return false;
    return session->step >= recipe->schedule.steps ||
           (recipe->evaluate.tasks_every > 0 ? every(session->step, recipe->evaluate.tasks_every)
                                             : validation_due);
}

static dt_status evaluate_tasks(dt_train_session *session, bool *last, dt_error *err)
{
    const dt_evaluation_results *results;
    bool stopped = false;
    dt_status st = DT_OK;

    dt_stopwatch_place(DT_PLACE_EVALUATE);
    DT_TRY(dt_report_phase(session, "evaluate", err));
    DT_TRY(dt_train_tasks_run(&results, session, &stopped, err));
    if (!stopped)
        DT_TRY(dt_report_tasks(session, results, err));
    DT_TRY(dt_report_phase(session, "train", err));
    dt_stopwatch_place(DT_PLACE_LOOP);
    note_stopped(session, DT_CHECKPOINT_LACKS_TASKS, stopped, last);
out:
    return st;
}

static dt_status generate_samples(dt_train_session *session, bool *last, dt_error *err)
{
    json_t *texts = NULL;
    bool stopped = false;
    dt_status st = DT_OK;

    dt_stopwatch_place(DT_PLACE_EVALUATE);
    DT_TRY(dt_report_phase(session, "evaluate", err));
    DT_TRY(dt_train_samples_run(&texts, session, &stopped, err));
    if (texts != NULL)
        DT_TRY(dt_report_samples(session, texts, err));
    DT_TRY(dt_report_phase(session, "train", err));
    dt_stopwatch_place(DT_PLACE_LOOP);
    note_stopped(session, DT_CHECKPOINT_LACKS_SAMPLES, stopped, last);
out:
    return st;
}

/* Whether samples are due after the completed steps: with each validation, and at the end. */
static bool are_samples_due(const dt_train_session *session, bool validation_due)
{
    return session->evaluation.samples != NULL &&
           session->evaluation.samples_step != session->step &&
           (validation_due || session->step >= session->recipe->schedule.steps);
}

/* Whether an evaluation is due after the completed steps: every evaluate.every steps and every
 * evaluate.every_epoch epochs. */
static bool is_evaluation_due(dt_train_session *session)
{
    const dt_recipe *recipe = session->recipe;
    bool ends = dt_train_session_ends_epoch(session, &session->evaluation.epoch,
                                            recipe->evaluate.every_epoch);

    return ends || every(session->step, recipe->evaluate.every);
}

/* Evaluate and save a checkpoint if they are due. */
static dt_status between_steps(dt_train_session *session, const dt_step *step, bool *last,
                               dt_error *err)
{
    const dt_recipe *recipe = session->recipe;
    bool evaluated = false, due = !step->skipped && is_evaluation_due(session);
    dt_status st = DT_OK;

    if (due ||
        (session->step >= recipe->schedule.steps && session->evaluation.step != session->step))
        DT_TRY(evaluate(session, &evaluated, last, err));
    if (!step->skipped && are_tasks_due(session, due))
        DT_TRY(evaluate_tasks(session, last, err));
    if (!step->skipped && are_samples_due(session, due))
        DT_TRY(generate_samples(session, last, err));
    dt_stopwatch_place(DT_PLACE_SAVE);
    DT_TRY(dt_saving_step(session, evaluated, *last, err));
    dt_stopwatch_place(DT_PLACE_LOOP);
out:
    return st;
}

/* Evaluate before the first step what a stop of the previous attempt interrupted, so that the metrics equal those of an
 * uninterrupted run. */
static dt_status before_steps(dt_train_session *session, bool *last, dt_error *err)
{
    unsigned missing = session->evaluation.missing;
    bool evaluated = false;
    dt_status st = DT_OK;

    session->evaluation.missing =
        missing & ((session->evaluation.tasks != NULL ? DT_CHECKPOINT_LACKS_TASKS : 0u) |
                   (session->evaluation.samples != NULL ? DT_CHECKPOINT_LACKS_SAMPLES : 0u));
    if (session->step == 0)
        return DT_OK;
    if (session->evaluation.step != session->step &&
        (is_evaluation_due(session) || missing & DT_CHECKPOINT_LACKS_VALIDATION))
        DT_TRY(evaluate(session, &evaluated, last, err));
    if (evaluated)
        DT_TRY(dt_saving_best(session, err));
    if (session->evaluation.missing & DT_CHECKPOINT_LACKS_TASKS)
        DT_TRY(evaluate_tasks(session, last, err));
    if (session->evaluation.missing & DT_CHECKPOINT_LACKS_SAMPLES)
        DT_TRY(generate_samples(session, last, err));
out:
    return st;
}

static dt_status train_step(dt_train_session *session, dt_step *step, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_step_begin(session, step, err));
    dt_record_begin(session->record, session->step + 1, session->data.sampler.epoch,
                    session->data.sampler.sample);
    DT_TRY(step_forward_backward(session, step, err));
    DT_TRY(step_agree(session, step, err));
    if (!step->skipped)
        DT_TRY(step_update(session, step, err));
    dt_stopwatch_place(DT_PLACE_INPUT);
    dt_stopwatch_part(DT_PART_HOST);
    DT_TRY(step_end(session, err));
    DT_TRY(dt_record_end(session->record, err));
    dt_stopwatch_place(DT_PLACE_LOOP);
out:
    return st;
}

/* Log what was drawn of each part of a mixture. */
static void log_parts(dt_train_session *session)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_sampler_describe_parts(&text, &session->data.sampler);
    if (text.length > 0 && session->mesh.world.rank == 0)
        dt_log_info("drawn of the mixture: %s", text.data);
    dt_strbuf_release(&text);
}

/* The step after which the run ends. */
static int64_t last_step(const dt_train_session *session)
{
    int64_t steps = session->recipe->schedule.steps, until = session->plan->until;

    return until > 0 && until < steps ? until : steps;
}

static dt_status run(dt_train_session *session, dt_error *err)
{
    const dt_recipe *recipe = session->recipe;
    dt_interval interval = {.sent_bytes = dt_train_session_sent_bytes(session)};
    dt_step step = {0};
    dt_pace pace = {0};
    bool last = false;
    dt_status st = DT_OK;

    DT_TRY(dt_report_start(session, err));
    DT_TRY(dt_report_phase(session, "train", err));
    DT_TRY(before_steps(session, &last, err));
    dt_report_time(session);
    while (session->step < last_step(session) && !last) {
        double start = dt_clock_monotonic_seconds();

        DT_TRY(train_step(session, &step, err));
        if (session->after_step != NULL)
            DT_TRY(session->after_step(session, dt_clock_monotonic_seconds() - start, err));
        if (step.skipped)
            dt_train_session_count_steps(session);
        last = step.stop || step.time_over || session->step >= last_step(session);
        dt_interval_add(&interval, &step, dt_clock_monotonic_seconds() - start);
        dt_stopwatch_step(dt_train_session_sent_bytes(session));
        DT_TRY(dt_report_pace(session, &pace, err));
        if (step.skipped && !last)
            continue;
        if (every(session->step, recipe->log.every) || session->step == 1 || last)
            DT_TRY(dt_report_step(session, &step, &interval, err));
        DT_TRY(between_steps(session, &step, &last, err));
    }
    DT_TRY(dt_record_flush(session->record, err));
    DT_TRY(session->comm.barrier(&session->comm, err));
    log_parts(session);
    DT_TRY(dt_report_finished(
        session,
        session->step >= last_step(session) && session->evaluation.missing == 0 ? "steps"
        : step.time_over                                                            ? "time_limit"
                                                                                    : "stopped",
        err));
out:
    return st;
}

dt_status dt_train(const dt_plan *plan, int64_t rank, dt_events *events, dt_error *err)
{
    dt_error unsent = DT_ERROR_INIT;
    dt_train_session session;
    dt_status st = DT_OK;

    st = dt_train_session_open(&session, plan, rank, events, err);
    if (session.stopped) {
        dt_error_clear(err);
        DT_TRY(dt_report_finished(&session, "stopped", err));
        goto out;
    }
    DT_TRY(st);
    DT_TRY(run(&session, err));
out:
    if (st != DT_OK && session.record != NULL) { /* as far as the step got */
        (void)dt_record_end(session.record, NULL);
        (void)dt_record_flush(session.record, NULL);
    }
    /* Report before closing the session: closing may wait for a collective in progress. */
    if (st != DT_OK && dt_report_failed(events, err, &unsent) != DT_OK)
        dt_log_error("cannot report the failure: %s", unsent.message);
    dt_train_session_close(&session);
    return st;
}
