#include <math.h>
#include <stdlib.h>

#include "engine/model/llama/model_int.h"

#define TWO_PI 6.283185307179586

/* Frequency scaling of Llama 3.1, by how many wavelengths fit into the original context: many:
 * unchanged; few: divided by rope_factor; in between: linear interpolation. */
static double stretch_long_waves(double frequency, const dt_llama_config *config)
{
    double fits = (double)config->rope_original_tokens * frequency / TWO_PI;
    double low = config->rope_low_freq_factor, high = config->rope_high_freq_factor;
    double share = (fits - low) / (high - low); /* share of the frequency that stays unchanged */

    if (share <= 0)
        return frequency / config->rope_factor;
    if (share >= 1)
        return frequency;
    return (1 - share) * frequency / config->rope_factor + share * frequency;
}

static float frequency_of(int64_t pair, const dt_llama_config *config)
{
    double frequency = pow(config->rope_theta, -2.0 * (double)pair / (double)config->head_width);

    switch (config->rope_scaling) {
    case DT_ROPE_LINEAR:
        frequency /= config->rope_factor;
        break;
    case DT_ROPE_LLAMA3:
        frequency = stretch_long_waves(frequency, config);
        break;
    case DT_ROPE_NONE:
        break;
    }
    return (float)frequency;
}

/* Frequency and angle are rounded to fp32 exactly where Hugging Face transformers does: at position
 * 1000 the rounding changes the angle, so it is part of the definition. */
void dt_llama_angles_row(float *out, int64_t position, const dt_llama_config *config)
{
    int64_t half = config->head_width / 2;

    for (int64_t i = 0; i < half; i++) {
        float angle = (float)position * frequency_of(i, config);

        out[i] = (float)cos((double)angle);
        out[half + i] = (float)sin((double)angle);
    }
}

dt_status dt_llama_angles_fill(dt_model *model, dt_error *err)
{
    const dt_llama_config *config = &model->config.llama;
    const dt_decoder *state = model->state;
    int64_t context = model->config.decoder.context;
    size_t bytes = (size_t)(context * config->head_width) * sizeof(float);
    float *host = malloc(bytes);
    dt_status st = DT_OK;

    if (!host)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the angles of %lld positions",
                 (long long)context);
    for (int64_t t = 0; t < context; t++)
        dt_llama_angles_row(host + t * config->head_width, t, config);
    DT_TRY(model->device->copy_in(model->device, state->lasting[DT_LLAMA_ANGLES].data, host, bytes,
                                  err));
    DT_TRY(model->device->synchronize(model->device, err));
out:
    free(host);
    return st;
}

dt_tensor dt_llama_angles(const dt_decoder *state)
{
    const dt_tensor *angles = &state->lasting[DT_LLAMA_ANGLES];
    int64_t first = state->first_position, width = angles->dim[1];
    float *rows = angles->data;

    if (state->growth.each)
        return dt_tensor_2d(state->lasting[DT_LLAMA_ROW_ANGLES].data, DT_F32, state->B, width);
    return dt_tensor_2d(rows + first * width, DT_F32, angles->dim[0] - first, width);
}

dt_status dt_llama_angles_gather(dt_model *model, dt_error *err)
{
    const dt_decoder *state = model->state;
    dt_tensor rows = dt_llama_angles(state), none = {0};

    return model->device->ops->embedding_forward(model->device, &rows, &state->growth.places,
                                                 &state->lasting[DT_LLAMA_ANGLES], &none, 1, NULL,
                                                 err);
}
