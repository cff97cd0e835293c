/* reference: the log ratios of pairs of answers by the base of an adapter (dpo).
 *
 * Once       before the first step of an attempt, over all training and validation pairs: the base does not change
 * Ranks      each data rank computes a part, and all get the sum; all make the same number of passes
 */
#include <stdlib.h>

#include "base/log.h"
#include "engine/channel/activity.h"
#include "engine/progress.h"
#include "engine/train/train_int.h"

/* Computes the rows from `first` on that are this rank's of one pass. */
static dt_status compute_pass(double *ratios, dt_train_session *session, bool validation,
                              int64_t first, int64_t count, dt_error *err)
{
    const dt_dataset *dataset = session->data.dataset;
    int64_t samples = session->batch.samples;
    void *inputs[DT_INPUTS_MAX];
    double loss_sum, counted;
    const float *of_samples;
    dt_pair_sums sums;
    dt_status st = DT_OK;

    for (int i = 0; i < DT_INPUTS_MAX; i++)
        inputs[i] = session->batch.inputs[i].data;
    first += session->mesh.data.rank * samples;
    for (int64_t i = 0; i < samples; i++)
        dt_dataset_fill_pair_row(dataset, validation, first + i < count ? first + i : -1, inputs,
                                 i);
    DT_TRY(session->state.strategy->evaluate(&session->state, &session->batch, &loss_sum, &counted,
                                             err));
    dt_model_pairs(&sums, &of_samples, session->model);
    for (int64_t i = 0; i < samples && first + i < count; i++)
        ratios[first + i] = (double)of_samples[i];
    dt_progress_made();
out:
    return st;
}

static dt_status compute(dt_train_session *session, bool validation, dt_error *err)
{
    int64_t count = dt_dataset_pair_rows(session->data.dataset, validation);
    int64_t per_pass = session->batch.samples * session->mesh.data.size;
    double *ratios = NULL;
    float *reference = NULL;
    dt_status st = DT_OK;

    if (count == 0)
        return DT_OK;
    ratios = calloc((size_t)count, sizeof(*ratios));
    reference = calloc((size_t)count, sizeof(*reference));
    if (ratios == NULL || reference == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the reference of %lld pairs", (long long)count);
    for (int64_t first = 0; first < count; first += per_pass)
        DT_TRY(compute_pass(ratios, session, validation, first, count, err));
    for (int64_t i = 0; i < count; i++)
        ratios[i] = dt_mesh_term(&session->mesh, DT_MESH_DATA, ratios[i]);
    DT_TRY(session->comm.all_reduce_f64(&session->comm, ratios, count, err));
    for (int64_t i = 0; i < count; i++)
        reference[i] = (float)ratios[i];
    dt_dataset_set_reference(session->data.dataset, validation, reference);
    reference = NULL;
    if (session->mesh.world.rank == 0)
        dt_log_info("computed the reference of %lld %s pairs", (long long)count,
                    validation ? "validation" : "training");
out:
    free(ratios);
    free(reference);
    return st;
}

dt_status dt_reference_compute(dt_train_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    if (session->model->config.decoder.beta == 0)
        return DT_OK;
    session->model->adapter_off = true;
    DT_TRY(compute(session, false, err));
    DT_TRY(compute(session, true, err));
out:
    session->model->adapter_off = false;
    return st;
}
