#include "engine/train/evaluate.h"

#include "engine/channel/stop.h"
#include "engine/progress.h"
#include "engine/train/valid_bleu.h"

/* Validation passes can contain collectives, so all ranks must stop after the same pass. */
static dt_status look_for_stop(dt_train_session *session, bool *stopped, dt_error *err)
{
    double asked = dt_stop_asked() ? 1 : 0;
    dt_status st = session->comm.all_reduce_f64(&session->comm, &asked, 1, err);

    *stopped = asked > 0;
    return st;
}

dt_status dt_evaluate(dt_train_session *session, bool *evaluated, bool *stopped, dt_error *err)
{
    int64_t count = dt_train_session_valid_count(session);
    int64_t per_pass = dt_train_session_valid_per_pass(session);
    double sums[2] = {0, 0}; /* sums of losses and of targets */
    dt_status st = DT_OK;

    *evaluated = *stopped = false;
    if (count > 0)
        DT_TRY(dt_valid_bleu_begin(session, err));
    for (int64_t first = 0; first < count; first += per_pass) {
        double loss_sum;
        int64_t counted;

        DT_TRY(look_for_stop(session, stopped, err));
        if (*stopped)
            goto out;
        DT_TRY(dt_train_session_fill_valid(session, first, err));
        DT_TRY(session->state.strategy->evaluate(&session->state, &session->batch, &loss_sum,
                                                 &counted, err));
        dt_progress_made();
        DT_TRY(dt_valid_bleu_add(session, stopped, err));
        if (*stopped)
            goto out;
        sums[0] += loss_sum;
        sums[1] += (double)counted;
    }
    if (count == 0)
        goto out;
    DT_TRY(dt_valid_bleu_end(&session->valid_bleu, session, err));
    for (int i = 0; i < 2; i++)
        sums[i] = dt_mesh_term(&session->mesh, DT_MESH_DATA, sums[i]);
    DT_TRY(session->comm.all_reduce_f64(&session->comm, sums, 2, err));
    session->valid_loss = sums[0] / sums[1];
    session->valid_step = session->step;
    *evaluated = true;
out:
    return st;
}
