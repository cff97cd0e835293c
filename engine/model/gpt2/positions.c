#include <math.h>
#include <stdlib.h>

#include "engine/model/gpt2/model_int.h"

#include "base/banned.h"

/* Positions count from here: fairseq's padding token is 1, and the first position follows it. */
#define FIRST_POSITION 2

/* Sines in the first half, cosines in the second, as tensor2tensor and fairseq have them; Vaswani
 * et al. 2017 interleave the two and divide by h, not h - 1. The frequency and the angle are
 * rounded to fp32 where fairseq's SinusoidalPositionalEmbedding.get_embedding rounds them: at
 * position 1000 that moves the angle, so it is part of the definition. */
void dt_gpt2_position_row(float *out, int64_t position, int64_t embed)
{
    int64_t half = embed / 2;
    float step = (float)-(log(10000.0) / (double)(half - 1));

    DT_ASSERT(half >= 2);
    for (int64_t i = 0; i < half; i++) {
        float frequency = (float)exp((double)((float)i * step));
        float angle = (float)position * frequency;

        out[i] = (float)sin((double)angle);
        out[half + i] = (float)cos((double)angle);
    }
    if (embed % 2 != 0)
        out[embed - 1] = 0;
}

/* By way of device memory that the first pass writes over: the table comes in fp32 and is kept in
 * the model's type. */
dt_status dt_gpt2_positions_fill(dt_model *model, dt_error *err)
{
    const dt_model_config *config = &model->config;
    const dt_decoder *state = model->state;
    dt_device *device = model->device;
    int64_t context = config->decoder.context, embed = config->decoder.embed;
    size_t bytes = (size_t)(context * embed) * sizeof(float);
    dt_tensor table = state->lasting[DT_GPT2_POSITIONS], from;
    float *host = NULL;
    void *wide = NULL;
    dt_status st = DT_OK;

    if (config->gpt2.positions != DT_POSITIONS_SINUSOIDAL)
        return DT_OK;
    host = malloc(bytes);
    if (!host)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a table of %lld positions", (long long)context);
    for (int64_t t = 0; t < context; t++)
        dt_gpt2_position_row(host + t * embed, FIRST_POSITION + t, embed);
    DT_TRY(device->alloc(device, &wide, bytes, err));
    DT_TRY(device->copy_in(device, wide, host, bytes, err));
    from = dt_tensor_2d(wide, DT_F32, context, embed);
    DT_TRY(device->ops->cast(device, &table, &from, err));
    DT_TRY(device->synchronize(device, err));
out:
    if (wide)
        device->free(device, wide);
    free(host);
    return st;
}
