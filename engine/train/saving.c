/* saving: decides when a checkpoint is due, saves it, and reports the outcome; and knows the best score. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/checkpoint/writer.h"
#include "engine/train/session.h"
#include "engine/train/train_int.h"
#include "recipes/cost/memory.h"
#include "recipes/fields/fields.h"

/* --- the best score */

bool dt_best_depends(const dt_best *best, double score)
{
    return score > best->saving && !(score > best->score);
}

bool dt_best_is(const dt_best *best, double score)
{
    return !isnan(score) && !(score > best->score) && !(score > best->saving);
}

void dt_best_begin(dt_best *best, double score)
{
    best->saving = score;
}

void dt_best_end(dt_best *best, bool whole)
{
    if (whole && !isnan(best->saving))
        best->score = best->saving;
    best->saving = NAN;
}

/* --- saving */

/* Timeout of one collective of the writer: the slowest rank writes its part before the others
 * continue. */
#define WRITER_TIMEOUT_SECONDS 3600.0

static bool saves(const dt_train_session *session)
{
    return strcmp(session->plan->directory, DT_PLAN_NOWHERE) != 0;
}

static dt_checkpoint_place place_of(const dt_train_session *session)
{
    const dt_plan *plan = session->plan;
    bool shared = plan->shared || plan->node_count == 1;

    return (dt_checkpoint_place){
        .parent = plan->directory,
        .shared = shared,
        .lead = shared ? session->mesh.world.rank == 0
                       : plan->ranks[session->mesh.world.rank].local_rank == 0,
    };
}

static dt_checkpoint_keep keep_of(const dt_recipe *recipe)
{
    return (dt_checkpoint_keep){
        .newest = recipe->checkpoint.keep,
        .epochs = recipe->checkpoint.keep_epochs,
        .best = recipe->checkpoint.keep_best,
    };
}

/* Score of the last evaluation. */
static double score_of(const dt_train_session *session)
{
    return dt_score_by(session->recipe->checkpoint.best_by, session->evaluation.loss,
                       session->evaluation.bleu);
}

static dt_checkpoint_info info_make(dt_train_session *session, unsigned reasons)
{
    const dt_plan *plan = session->plan;
    json_t *recipe = dt_recipe_to_json(&plan->recipe);
    const json_t *optimizer = json_object_get(recipe, "optimizer");
    bool is_best = (reasons & DT_CHECKPOINT_BEST) != 0;
    dt_checkpoint_beside file;

    if (!dt_tokenizer_get_file(dt_dataset_tokenizer(session->data.dataset), &file.name, &file.bytes,
                               &file.length))
        file.name = NULL;
    return (dt_checkpoint_info){
        .run = plan->run,
        .attempt = plan->attempt,
        .step = session->step,
        .steps_total = session->recipe->schedule.steps,
        .epoch = session->data.sampler.epoch,
        .sample = session->data.sampler.sample,
        .step_samples = dt_train_session_samples_per_step(session),
        .loss = session->loss,
        .valid_loss = session->evaluation.step == session->step ? session->evaluation.loss : NAN,
        .valid_bleu = session->evaluation.step == session->step ? session->evaluation.bleu : NAN,
        .best_score = is_best ? score_of(session) : session->saving.best.score,
        .best_by = session->recipe->checkpoint.best_by,
        .kept_for = reasons,
        .missing = session->evaluation.missing,
        .optimizer = json_string_value(json_object_get(optimizer, "kind")),
        .loss_scale = session->scaler.on ? session->scaler.scale : 0,
        .clean_steps = session->scaler.clean_steps,
        .skipped_steps = session->scaler.skipped_steps,
        .recipe = recipe,
        .tokenizer = dt_tokenizer_to_json(dt_dataset_tokenizer(session->data.dataset)),
        .data = json_incref(session->data.fingerprint),
        .base = json_incref(session->base),
        .tokenizer_file = file,
    };
}

/* --- reasons for a save */

static bool every(int64_t step, int64_t interval)
{
    return interval > 0 && step % interval == 0;
}

static unsigned reasons_now(dt_train_session *session, bool is_best, bool last)
{
    unsigned reasons = last ? DT_CHECKPOINT_END : 0;

    if (every(session->step, session->recipe->checkpoint.every))
        reasons |= DT_CHECKPOINT_STEPS;
    if (dt_train_session_ends_epoch(session, &session->saving.epoch,
                                    session->recipe->checkpoint.every_epoch))
        reasons |= DT_CHECKPOINT_EPOCH;
    if (is_best)
        reasons |= DT_CHECKPOINT_BEST;
    return reasons;
}

/* --- saving in the background */

static bool saves_before_the_end(const dt_train_session *session)
{
    const dt_recipe *recipe = session->recipe;

    return dt_memory_saves_beside(
        recipe, dt_validation_count(session->data.dataset, recipe->batch.tokens) > 0);
}

/* Either all ranks save in the background, or none does. */
static dt_status agree_on_writer(dt_train_session *session, dt_status mine, dt_error *problem,
                                 dt_error *err)
{
    double failed = mine != DT_OK ? 1 : 0;
    dt_status st = DT_OK;

    DT_TRY(session->comm.all_reduce_f64(&session->comm, &failed, 1, err));
    if (failed > 0) {
        dt_checkpoint_writer_close(session->saving.writer);
        session->saving.writer = NULL;
        dt_log_warn("training waits for each checkpoint to be written: %s",
                    mine != DT_OK ? problem->message : "another rank lacks memory for a snapshot");
    }
out:
    return st;
}

dt_status dt_saving_open(dt_train_session *session, dt_error *err)
{
    dt_checkpoint_place place = place_of(session);
    dt_checkpoint_keep keep = keep_of(session->recipe);
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK, opened;

    if (!saves(session) || !saves_before_the_end(session))
        return DT_OK;
    DT_TRY(dt_comm_open(&session->saving.comm, session->events, "checkpoint", session->mesh.world,
                        WRITER_TIMEOUT_SECONDS, err));
    opened = dt_checkpoint_writer_open(&session->saving.writer, &place, &keep, &session->state,
                                       &session->saving.comm, session->device.threads, &problem);
    DT_TRY(agree_on_writer(session, opened, &problem, err));
out:
    return st;
}

void dt_saving_close(dt_train_session *session)
{
    dt_checkpoint_writer_close(session->saving.writer);
    session->saving.writer = NULL;
    dt_comm_close(&session->saving.comm);
}

/* --- outcome of a save */

/* Report the outcome of a save. A failed save is only reported, unless it was the last save or a
 * peer was lost. */
static dt_status tell(dt_train_session *session, const dt_checkpoint_outcome *outcome, bool last,
                      dt_error *err)
{
    const char *message = outcome->err.message;
    dt_status st = outcome->st;

    dt_best_end(&session->saving.best, outcome->st == DT_OK);
    if (st == DT_OK)
        return dt_report_checkpoint(session, outcome, err);
    if (last || st == DT_ERR_COMM || st == DT_ERR_PEER)
        return DT_FAIL(err, st, "step %lld: no checkpoint was saved: %s", (long long)outcome->step,
                       message);
    dt_log_error("step %lld: no checkpoint was saved: %s", (long long)outcome->step, message);
    /* Rank 0 as well: the event of a rank on a full disk waits there. */
    return outcome->saved.failed_here || session->mesh.world.rank == 0
               ? dt_report_checkpoint_failed(session, outcome->step, message, err)
               : DT_OK;
}

static dt_status collect(dt_train_session *session, bool wait, dt_error *err)
{
    dt_checkpoint_outcome outcome;

    if (session->saving.writer == NULL ||
        !dt_checkpoint_writer_collect(session->saving.writer, wait, &outcome))
        return DT_OK;
    return tell(session, &outcome, false, err);
}

static dt_status save_and_wait(dt_train_session *session, unsigned reasons, bool last,
                               dt_error *err)
{
    double start = dt_clock_monotonic_seconds();
    dt_checkpoint_place place = place_of(session);
    dt_checkpoint_keep keep = keep_of(session->recipe);
    dt_checkpoint_info info = info_make(session, reasons);
    dt_checkpoint_outcome outcome = {
        .step = info.step, .valid_loss = info.valid_loss, .score = dt_checkpoint_score(&info)};
    dt_error unpruned = DT_ERROR_INIT;
    dt_status st = DT_OK;

    outcome.st = dt_checkpoint_save(&outcome.saved, &place, &info, &session->state, &outcome.err);
    outcome.seconds = dt_clock_monotonic_seconds() - start;
    json_decref(info.recipe);
    json_decref(info.tokenizer);
    json_decref(info.data);
    json_decref(info.base);
    DT_TRY(tell(session, &outcome, last, err));
    if (outcome.st == DT_OK && place.lead &&
        dt_checkpoint_prune(place.parent, &keep, &unpruned) != DT_OK)
        dt_log_warn("step %lld: cannot remove old checkpoints: %s", (long long)session->step,
                    unpruned.message);
out:
    return st;
}

/* Decide whether this evaluation is the best. Ranks learn the outcome of a save at different steps
 * but must decide alike: if the decision depends on a save in progress, they wait for it. */
static dt_status is_best(bool *out, dt_train_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    if (dt_best_depends(&session->saving.best, score_of(session)))
        DT_TRY(collect(session, true, err));
    *out = dt_best_is(&session->saving.best, score_of(session));
    if (*out)
        dt_best_begin(&session->saving.best, score_of(session));
    if (*out && session->recipe->checkpoint.keep_best == 0) { /* the best is not to be saved */
        dt_best_end(&session->saving.best, true);
        *out = false;
    }
out:
    return st;
}

static dt_status save(dt_train_session *session, unsigned reasons, bool last, dt_error *err)
{
    bool background = session->saving.writer != NULL && !last;
    dt_status st = DT_OK;

    DT_TRY(dt_report_phase(session, "save", err));
    DT_TRY(dt_record_flush(session->record, err)); /* a checkpoint is never newer than the record */
    DT_TRY(dt_replicas_compare(session, err));
    DT_TRY(collect(session, true, err));
    if (background) {
        dt_checkpoint_info info = info_make(session, reasons);

        dt_checkpoint_writer_start(session->saving.writer, &info);
    } else {
        DT_TRY(save_and_wait(session, reasons, last, err));
    }
    DT_TRY(dt_report_phase(session, "train", err));
out:
    return st;
}

dt_status dt_saving_step(dt_train_session *session, bool evaluated, bool last, dt_error *err)
{
    unsigned reasons;
    bool best = false;
    dt_status st = DT_OK;

    if (!saves(session))
        return DT_OK;
    DT_TRY(collect(session, false, err));
    if (evaluated)
        DT_TRY(is_best(&best, session, err));
    reasons = reasons_now(session, best, last);
    if (reasons != 0)
        DT_TRY(save(session, reasons, last, err));
out:
    return st;
}

dt_status dt_saving_best(dt_train_session *session, dt_error *err)
{
    bool best = false;
    dt_status st = DT_OK;

    if (!saves(session))
        return DT_OK;
    DT_TRY(is_best(&best, session, err));
    if (best)
        DT_TRY(save(session, DT_CHECKPOINT_BEST, false, err));
out:
    return st;
}
