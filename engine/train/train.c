#include "engine/train/train.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/train/evaluate.h"
#include "engine/train/replicas.h"
#include "engine/train/report.h"
#include "engine/train/saving.h"
#include "engine/train/step.h"

static bool every(int64_t step, int64_t interval)
{
    return interval > 0 && step % interval == 0;
}

/* Evaluate. A stop request during the evaluation ends the evaluation and the run. */
static dt_status evaluate(dt_train_session *session, bool *evaluated, bool *last, dt_error *err)
{
    bool stopped = false;
    dt_status st = DT_OK;

    DT_TRY(dt_report_phase(session, "evaluate", err));
    DT_TRY(dt_replicas_compare(session, err));
    DT_TRY(dt_evaluate(session, evaluated, &stopped, err));
    if (*evaluated)
        DT_TRY(dt_report_evaluation(session, err));
    DT_TRY(dt_report_phase(session, "train", err));
    *last = *last || stopped;
out:
    return st;
}

/* Whether an evaluation is due after the completed steps: every evaluate.every steps and every
 * evaluate.every_epoch epochs. */
static bool is_evaluation_due(dt_train_session *session)
{
    const dt_recipe *recipe = session->recipe;
    bool ends =
        dt_train_session_ends_epoch(session, &session->epoch_valid, recipe->evaluate.every_epoch);

    return ends || every(session->step, recipe->evaluate.every);
}

/* Evaluate and save a checkpoint if they are due. */
static dt_status between_steps(dt_train_session *session, const dt_step *step, bool *last,
                               dt_error *err)
{
    const dt_recipe *recipe = session->recipe;
    bool evaluated = false;
    dt_status st = DT_OK;

    if ((!step->skipped && is_evaluation_due(session)) ||
        (session->step >= recipe->schedule.steps && session->valid_step != session->step))
        DT_TRY(evaluate(session, &evaluated, last, err));
    DT_TRY(dt_saving_step(session, evaluated, *last, err));
out:
    return st;
}

/* Evaluate before the first step if the previous attempt was stopped during its evaluation: its
 * checkpoint lacks that loss, and the metrics should equal those of an uninterrupted run. */
static dt_status before_steps(dt_train_session *session, bool *last, dt_error *err)
{
    bool evaluated = false;
    dt_status st = DT_OK;

    if (session->step == 0 || session->valid_step == session->step || !is_evaluation_due(session))
        return DT_OK;
    DT_TRY(evaluate(session, &evaluated, last, err));
    if (evaluated)
        DT_TRY(dt_saving_best(session, err));
out:
    return st;
}

static dt_status train_step(dt_train_session *session, dt_step *step, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_step_begin(session, step, err));
    DT_TRY(dt_step_forward_backward(session, step, err));
    DT_TRY(dt_step_agree(session, step, err));
    if (!step->skipped)
        DT_TRY(dt_step_update(session, step, err));
    DT_TRY(dt_step_end(session, err));
out:
    return st;
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
    while (session->step < recipe->schedule.steps && !last) {
        double start = dt_clock_monotonic_seconds();

        DT_TRY(train_step(session, &step, err));
        if (session->faults.count > 0 &&
            dt_faults_step(&session->faults, session->step, dt_clock_monotonic_seconds() - start))
            DT_TRY(dt_replicas_flip(session, err));
        if (step.skipped)
            dt_train_session_count_steps(session);
        last = step.stop || step.time_over || session->step >= recipe->schedule.steps;
        dt_interval_add(&interval, &step, dt_clock_monotonic_seconds() - start);
        DT_TRY(dt_report_pace(session, &pace, err));
        if (step.skipped && !last)
            continue;
        if (every(session->step, recipe->log.every) || session->step == 1 || last)
            DT_TRY(dt_report_step(session, &step, &interval, err));
        DT_TRY(between_steps(session, &step, &last, err));
    }
    DT_TRY(session->comm.barrier(&session->comm, err));
    DT_TRY(dt_report_finished(session,
                              session->step >= recipe->schedule.steps ? "steps"
                              : step.time_over                        ? "time_limit"
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
    /* Report before closing the session: closing may wait for a collective in progress. */
    if (st != DT_OK && dt_report_failed(events, err, &unsent) != DT_OK)
        dt_log_error("cannot report the failure: %s", unsent.message);
    dt_train_session_close(&session);
    return st;
}
