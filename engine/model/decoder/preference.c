/* preference: the loss of pairs of answers, of which one is preferred (DPO, Rafailov et al. 2023,
 * https://arxiv.org/abs/2305.18290).
 *
 * Formula    L = -log sigmoid(z), z = beta (r - reference), r = log p(chosen) - log p(rejected)
 * Sample     a row with both answers as documents of their own; a target's weight is 1 in the chosen and -1 in the
 *            rejected one, so that the row's sum of weighted cross entropies is -r
 * Gradient   that of the cross entropy with the weights beta sigmoid(-z) times these. So the losses of all rows are
 *            computed first, then the weights, on the host, then the gradients: the head is multiplied once more
 */
#include <math.h>
#include <string.h>

#include "engine/model/decoder/decoder.h"

/* log(1 + exp(x)), without overflow. */
static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* The loss of a row, and the factor of its weights. */
static double lose(double *factor, dt_pair_sums *sums, double beta, double r, double reference)
{
    double z = beta * (r - reference);

    *factor = beta / (1 + exp(z));
    sums->margin += z;
    sums->right += z > 0;
    sums->pairs++;
    return softplus(-z);
}

static dt_status read(float *out, dt_model *model, const dt_tensor *from, dt_error *err)
{
    return model->device->copy_out(model->device, out, from->data, dt_tensor_bytes(from), err);
}

dt_status dt_decoder_weigh_pairs(dt_model *model, const dt_tensor *reference, bool backward,
                                 dt_error *err)
{
    dt_decoder *state = model->state;
    int64_t B = state->B, T = state->T;
    float *losses = state->pairs.host, *weights = losses + B * T, *wanted = weights + B * T;
    dt_status st = DT_OK;

    DT_TRY(model->device->synchronize(model->device, err));
    DT_TRY(read(losses, model, &state->losses, err));
    DT_TRY(read(weights, model, &state->weights, err));
    DT_TRY(read(wanted, model, reference, err));
    state->pairs.of_pass = (dt_pair_sums){0};
    for (int64_t b = 0; b < B; b++) {
        double sum = 0, factor = 0, loss = 0;
        bool counts = false;

        for (int64_t t = 0; t < T; t++) {
            sum += (double)losses[b * T + t];
            counts = counts || weights[b * T + t] != 0;
        }
        if (counts)
            loss = lose(&factor, &state->pairs.of_pass, model->config.decoder.beta, -sum,
                        (double)wanted[b]);
        wanted[b] = (float)-sum;
        memset(losses + b * T, 0, (size_t)T * sizeof(*losses));
        losses[b * T] = (float)loss;
        state->pairs.of_pass.loss += loss;
        for (int64_t t = 0; t < T; t++)
            weights[b * T + t] *= (float)factor;
    }
    if (backward)
        DT_TRY(model->device->copy_in(model->device, state->pairs.weights.data, weights,
                                      (size_t)(B * T) * sizeof(*weights), err));
out:
    return st;
}

dt_status dt_decoder_put_pair_losses(dt_model *model, dt_error *err)
{
    const dt_decoder *state = model->state;

    return model->device->copy_in(model->device, state->losses.data, state->pairs.host,
                                  dt_tensor_bytes(&state->losses), err);
}

void dt_model_pairs(dt_pair_sums *out, const float **log_ratios, const dt_model *model)
{
    const dt_decoder *state = model->state;

    *out = state->pairs.of_pass;
    *log_ratios = state->pairs.host + 2 * state->B * state->T;
}
