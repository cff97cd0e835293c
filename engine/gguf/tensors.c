/* tensors: converts the values of a tensor to the type that a GGUF file has. */
#include <math.h>
#include <string.h>

#include "engine/gguf/gguf_int.h"
#include "engine/ops/cpu/half_int.h"

enum { BLOCK = 32, BLOCK_BYTES = 2 + BLOCK };

int64_t dt_gguf_bytes(dt_gguf_type type, int64_t elems)
{
    if (type == DT_GGUF_Q8_0)
        return elems / BLOCK * BLOCK_BYTES;
    return elems * (type == DT_GGUF_F32 ? 4 : 2);
}

/* (R, C) to (C, R). */
static void transpose(float *out, const float *in, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            out[c * rows + r] = in[r * columns + c];
}

/* Rows i and i + D/2 of each head become neighbours. */
static void pair_rows(float *out, const float *in, int64_t rows, int64_t columns, int64_t heads)
{
    int64_t width = rows / heads;

    for (int64_t r = 0; r < rows; r++) {
        int64_t head = r / width, i = r % width;
        int64_t from = head * width + (i % 2) * (width / 2) + i / 2;

        memcpy(out + r * columns, in + from * columns, (size_t)columns * sizeof(*out));
    }
}

/* d = max |x| / 127 as F16, then round(x / d), halves away from zero. */
static void quantize(unsigned char *out, const float *in, int64_t elems)
{
    for (int64_t b = 0; b < elems / BLOCK; b++, in += BLOCK, out += BLOCK_BYTES) {
        float most = 0, scale, inverse;
        uint16_t half;

        for (int i = 0; i < BLOCK; i++)
            most = fabsf(in[i]) > most ? fabsf(in[i]) : most;
        scale = most / 127.0F;
        inverse = scale != 0 ? 1.0F / scale : 0;
        half = dt_f16_narrow(scale);
        memcpy(out, &half, sizeof(half));
        for (int i = 0; i < BLOCK; i++)
            out[2 + i] = (unsigned char)(signed char)roundf(in[i] * inverse);
    }
}

static dt_status narrow(uint16_t *out, const float *in, const dt_gguf_tensor *tensor, dt_error *err)
{
    for (int64_t i = 0; i < tensor->elems; i++) {
        if (tensor->type == DT_GGUF_F16 && fabsf(in[i]) >= 65520.0F)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s' contains %g, which F16 cannot represent: use --type bf16 or f32",
                           tensor->name, (double)in[i]);
        out[i] = tensor->type == DT_GGUF_F16 ? dt_f16_narrow(in[i]) : dt_bf16_narrow(in[i]);
    }
    return DT_OK;
}

dt_status dt_gguf_convert(void *out, float *work, const dt_gguf_tensor *tensor, dt_error *err)
{
    const float *values = work;
    int64_t columns = tensor->dim[tensor->ndim - 1], rows = tensor->elems / columns;
    dt_gguf_turn turn = tensor->row->turn;

    memcpy(work, tensor->values, (size_t)tensor->elems * sizeof(*work));
    if (turn == DT_GGUF_PLUS_ONE)
        for (int64_t i = 0; i < tensor->elems; i++)
            work[i] += 1;
    if (turn == DT_GGUF_TRANSPOSED && tensor->ndim == 2) {
        transpose(work + tensor->elems, work, columns, rows);
        values = work + tensor->elems;
    } else if (turn == DT_GGUF_QUERY_PAIRS || turn == DT_GGUF_KEY_PAIRS) {
        if (tensor->ndim == 1) {
            rows = columns;
            columns = 1;
        }
        pair_rows(work + tensor->elems, work, rows, columns, tensor->heads);
        values = work + tensor->elems;
    }
    if (tensor->type == DT_GGUF_Q8_0)
        quantize(out, values, tensor->elems);
    else if (tensor->type == DT_GGUF_F32)
        memcpy(out, values, (size_t)tensor->bytes);
    else
        return narrow(out, values, tensor, err);
    return DT_OK;
}
