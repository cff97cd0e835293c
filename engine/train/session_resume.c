/* session_resume: loads the initial state of a session from a checkpoint or from external weights. */
#include <math.h>

#include "base/log.h"
#include "engine/data/fingerprint.h"
#include "engine/train/session_int.h"
#include "engine/weights/weights.h"

/* The epoch in which the last step began. The checkpoint does not store it if a stop interrupted
 * the evaluation of that step. */
static int64_t epoch_before(const dt_train_session *session, const dt_checkpoint_info *info)
{
    int64_t samples = dt_sampler_epoch_samples(&session->sampler);
    int64_t behind = info->step_samples - info->sample;

    return behind > 0 ? info->epoch - 1 - (behind - 1) / samples : info->epoch;
}

dt_status dt_session_resume(dt_train_session *session, dt_checkpoint *checkpoint, dt_error *err)
{
    const dt_checkpoint_info *info = dt_checkpoint_get_info(checkpoint);
    dt_status st = DT_OK;

    DT_TRY(dt_checkpoint_load(checkpoint, &session->state, err));
    if (!session->new_data)
        DT_TRY(dt_sampler_seek(&session->sampler, info->epoch, info->sample, err));
    session->step = info->step;
    session->loss = info->loss;
    session->valid_loss = info->valid_loss;
    session->valid_step = isnan(info->valid_loss) ? -1 : info->step;
    session->epoch_valid = session->sampler.epoch;
    if (!session->new_data && session->valid_step < 0 && info->epoch > 0)
        session->epoch_valid = epoch_before(session, info);
    session->valid_bleu = info->valid_bleu;
    session->best.score = info->best_score;
    if (info->best_by != session->recipe->checkpoint.best_by) {
        dt_log_info("checkpoint.best_by has changed since the checkpoint; the best value is reset");
        session->best.score = NAN;
    }
    if (session->new_data || dt_fingerprint_validation_differs(info->data, session->fingerprint)) {
        dt_log_info("the validation data differ from the checkpoint's; the best loss is reset");
        session->best.score = NAN;
    }
    if (session->scaler.on && info->loss_scale > 0) {
        session->scaler.scale = info->loss_scale;
        session->scaler.clean_steps = info->clean_steps;
        session->scaler.skipped_steps = info->skipped_steps;
    }
out:
    return st;
}

dt_status dt_session_open_weights(dt_train_session *session, dt_error *err)
{
    const dt_plan *plan = session->plan;

    if (plan->resume_from[0] != '\0')
        return DT_OK;
    if (plan->weights.kind == DT_WEIGHTS_NONE)
        return plan->recipe.model.from[0] == '\0'
                   ? DT_OK
                   : DT_FAIL(err, DT_ERR_CORRUPT, "the plan does not list the files of '%s'",
                             plan->recipe.model.from);
    return dt_weights_open(&session->weights, &plan->weights, err);
}

/* Turns the failure of any rank to read damaged weights into an error of the recipe, on all ranks: a restart would read
 * the same file. The ranks have agreed before that one of them failed. */
static dt_status refuse_restarts(dt_train_session *session, dt_status st, dt_error *err)
{
    dt_comm *comm = session->state.comm; /* as in dt_weights_load */
    double damaged = st == DT_ERR_CORRUPT;

    if (comm->all_reduce_f64(comm, &damaged, 1, NULL) != DT_OK || damaged == 0)
        return st;
    if (err != NULL)
        err->code = DT_ERR_RECIPE;
    return DT_ERR_RECIPE;
}

dt_status dt_session_load_weights(dt_train_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    if (session->weights == NULL)
        return DT_OK;
    st = dt_weights_load(session->weights, &session->state, err);
    if (st == DT_ERR_CORRUPT || st == DT_ERR_IO)
        st = refuse_restarts(session, st, err);
    DT_TRY(st);
    if (session->mesh.world.rank == 0)
        dt_log_info("parameters loaded from '%s'", session->recipe->model.from);
out:
    dt_weights_close(session->weights);
    session->weights = NULL;
    return st;
}
