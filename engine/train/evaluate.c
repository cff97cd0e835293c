#include "engine/train/evaluate.h"

#include "engine/channel/stop.h"
#include "engine/progress.h"

#include "base/banned.h"

/* Passes may be collective: all ranks end after the same one. */
static dt_status look_for_stop(dt_train_session *session, bool *stopped, dt_error *err)
{
    double asked = dt_stop_asked() ? 1 : 0;
    dt_status st = session->comm.all_reduce_f64(&session->comm, &asked, 1, err);

    *stopped = asked > 0;
    return st;
}

dt_status dt_evaluate(dt_train_session *session, bool *evaluated, bool *stopped, dt_error *err)
{
    const dt_recipe *recipe = session->recipe;
    int64_t all = dt_validation_count(session->dataset, recipe->batch.tokens);
    int64_t wanted = recipe->evaluate.sequences;
    int64_t count = wanted > 0 && wanted < all ? wanted : all;
    int64_t rows = session->batch.samples, per_pass = rows * session->mesh.data.size;
    double sums[2] = {0, 0}; /* loss, targets */
    void *inputs[DT_INPUTS_MAX];
    dt_status st = DT_OK;

    *evaluated = *stopped = false;
    dt_train_session_inputs(session, inputs);
    for (int64_t first = 0; first < count; first += per_pass) {
        double loss_sum;
        int64_t counted;

        DT_TRY(look_for_stop(session, stopped, err));
        if (*stopped)
            goto out;
        for (int64_t row = 0; row < rows; row++) {
            int64_t turn = first + row * session->mesh.data.size + session->mesh.data.rank;

            DT_TRY(dt_validation_fill(session->dataset, recipe->batch.tokens,
                                      turn < count ? turn * all / count : -1, inputs, row, err));
        }
        DT_TRY(session->state.strategy->evaluate(&session->state, &session->batch, &loss_sum,
                                                 &counted, err));
        dt_progress_made();
        sums[0] += loss_sum;
        sums[1] += (double)counted;
    }
    if (count == 0)
        goto out;
    for (int i = 0; i < 2; i++)
        sums[i] = dt_mesh_term(&session->mesh, DT_MESH_DATA, sums[i]);
    DT_TRY(session->comm.all_reduce_f64(&session->comm, sums, 2, err));
    session->valid_loss = sums[0] / sums[1];
    session->valid_step = session->step;
    *evaluated = true;
out:
    return st;
}
