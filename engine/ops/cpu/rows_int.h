/* rows_int: activations of either type seen as rows of fp32.
 *
 * An fp32 row is used where it lies; a bf16 row is widened into scratch, or written there and
 * narrowed afterwards. Ops are thus written once:
 *
 *     const float *in = dt_row_read(x, start, n, scratch_a);
 *     float *out = dt_row_open(y, start, scratch_b);
 *     ...
 *     dt_row_close(y, start, n, out);
 *
 * Narrowing rounds to nearest, ties to even; a NaN stays one.
 */
#ifndef DT_ENGINE_OPS_CPU_ROWS_INT_H
#define DT_ENGINE_OPS_CPU_ROWS_INT_H

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "engine/tensor.h"

/* Elements that an elementwise op takes at a time: input and output stay in the first-level cache.
 */
#define DT_ROW_CHUNK 2048

static inline float dt_bf16_widen(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t dt_bf16_narrow(float value)
{
    uint32_t bits, rounded;

    memcpy(&bits, &value, sizeof bits);
    rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

static inline void dt_row_widen(float *out, const uint16_t *in, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = dt_bf16_widen(in[i]);
}

static inline void dt_row_narrow(uint16_t *out, const float *in, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = dt_bf16_narrow(in[i]);
}

/* Elements start .. start+n of x in fp32: in place, or widened into scratch. */
static inline const float *dt_row_read(const dt_tensor *x, int64_t start, int64_t n, float *scratch)
{
    if (x->dtype == DT_F32)
        return (const float *)x->data + start;
    dt_row_widen(scratch, (const uint16_t *)x->data + start, n);
    return scratch;
}

/* Where to write them. */
static inline float *dt_row_open(dt_tensor *y, int64_t start, float *scratch)
{
    return y->dtype == DT_F32 ? (float *)y->data + start : scratch;
}

static inline void dt_row_close(dt_tensor *y, int64_t start, int64_t n, const float *row)
{
    if (y->dtype != DT_F32)
        dt_row_narrow((uint16_t *)y->data + start, row, n);
}

/* The types that these functions know. */
static inline dt_status dt_row_check(const dt_tensor *x, const char *op, dt_error *err)
{
    if (x->dtype == DT_F32 || x->dtype == DT_BF16)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "%s: type '%s' cannot be computed on the cpu: use fp32 or bf16", op,
                   dt_dtype_name(x->dtype));
}

#endif
