#include "engine/model/sinusoids.h"

#include <math.h>
#include <stdlib.h>

#include "engine/ops/ops.h"

/* Sines in the first half, cosines in the second, as in tensor2tensor and fairseq; Vaswani et al.
 * 2017 interleave the two and divide by h, not h - 1. Frequency and angle are rounded to fp32
 * exactly where fairseq's SinusoidalPositionalEmbedding.get_embedding rounds them: at position 1000
 * the rounding changes the angle, so it is part of the definition. */
void dt_sinusoids_row(float *out, int64_t position, int64_t embed)
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

/* Uses temporary device memory: the table is computed in fp32 and stored in the model's type. */
dt_status dt_sinusoids_fill(dt_device *device, dt_tensor *table, int64_t first, dt_error *err)
{
    int64_t rows = table->dim[0], embed = table->dim[1];
    size_t bytes = (size_t)(rows * embed) * sizeof(float);
    dt_tensor from;
    float *host = malloc(bytes);
    void *wide = NULL;
    dt_status st = DT_OK;

    if (!host)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a table of %lld positions", (long long)rows);
    for (int64_t t = 0; t < rows; t++)
        dt_sinusoids_row(host + t * embed, first + t, embed);
    DT_TRY(device->alloc(device, &wide, bytes, err));
    DT_TRY(device->copy_in(device, wide, host, bytes, err));
    from = dt_tensor_2d(wide, DT_F32, rows, embed);
    DT_TRY(device->ops->cast(device, table, &from, err));
    DT_TRY(device->synchronize(device, err));
out:
    if (wide)
        device->free(device, wide);
    free(host);
    return st;
}
