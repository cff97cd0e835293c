#include "engine/saving.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/report.h"
#include "recipes/fields.h"

#include "base/banned.h"

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
        .recipe = dt_recipe_to_json(&plan->recipe),
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

dt_status dt_saving_step(dt_session *session, bool evaluated, bool last, dt_error *err)
{
    int64_t interval = session->recipe->checkpoint.every;

    (void)evaluated;
    if (last || (interval > 0 && session->step % interval == 0))
        return save(session, last, err);
    return DT_OK;
}
