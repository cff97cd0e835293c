/* rows_int: reads and writes activations of any type as rows of fp32.
 *
 * A row of fp32 is used in place. A 16-bit row is widened into scratch when it is read; when it is
 * written, it is built in scratch and narrowed afterwards (half_int.h). The code of an op is thus the
 * same for all types:
 *
 *     const float *in = dt_row_read(x, start, n, scratch_a);
 *     float *out = dt_row_open(y, start, scratch_b);
 *     ...
 *     dt_row_close(y, start, n, out);
 */
#ifndef DT_ENGINE_OPS_CPU_ROWS_INT_H
#define DT_ENGINE_OPS_CPU_ROWS_INT_H

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "engine/ops/cpu/half_int.h"
#include "engine/tensor.h"

/* Elements that an elementwise op processes at a time: input and output stay in the L1 cache. */
#define DT_ROW_CHUNK 2048

/* type: BF16 or F16 */
static inline void dt_row_widen(float *out, const uint16_t *in, dt_dtype type, int64_t n)
{
    if (type == DT_F16)
        dt_f16_widen_row(out, in, n);
    else
        dt_bf16_widen_row(out, in, n);
}

static inline void dt_row_narrow(uint16_t *out, dt_dtype type, const float *in, int64_t n)
{
    if (type == DT_F16)
        dt_f16_narrow_row(out, in, n);
    else
        dt_bf16_narrow_row(out, in, n);
}

/* Returns elements start .. start+n-1 of x as fp32: in place, or widened into scratch. */
static inline const float *dt_row_read(const dt_tensor *x, int64_t start, int64_t n, float *scratch)
{
    if (x->dtype == DT_F32)
        return (const float *)x->data + start;
    dt_row_widen(scratch, (const uint16_t *)x->data + start, x->dtype, n);
    return scratch;
}

/* Returns where to write fp32 elements of y from `start` on: in place, or scratch. Finish with
 * dt_row_close(). */
static inline float *dt_row_open(dt_tensor *y, int64_t start, float *scratch)
{
    return y->dtype == DT_F32 ? (float *)y->data + start : scratch;
}

static inline void dt_row_close(dt_tensor *y, int64_t start, int64_t n, const float *row)
{
    if (y->dtype != DT_F32)
        dt_row_narrow((uint16_t *)y->data + start, y->dtype, row, n);
}

/* Checks that the type of x is one of F32, BF16 and F16; else DT_ERR_UNSUPPORTED. */
static inline dt_status dt_row_check(const dt_tensor *x, const char *op, dt_error *err)
{
    if (x->dtype == DT_F32 || x->dtype == DT_BF16 || x->dtype == DT_F16)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "%s: type '%s' cannot be computed on the cpu: use fp32, bf16 or fp16", op,
                   dt_dtype_name(x->dtype));
}

#endif
