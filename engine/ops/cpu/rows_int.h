/* rows_int: activations of any type seen as rows of fp32.
 *
 * An fp32 row is used where it lies; one of 16 bits is widened into scratch, or written there and
 * narrowed afterwards (half_int.h). Ops are thus written once:
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

/* Elements that an elementwise op takes at a time: input and output stay in the first-level cache.
 */
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

/* Elements start .. start+n of x in fp32: in place, or widened into scratch. */
static inline const float *dt_row_read(const dt_tensor *x, int64_t start, int64_t n, float *scratch)
{
    if (x->dtype == DT_F32)
        return (const float *)x->data + start;
    dt_row_widen(scratch, (const uint16_t *)x->data + start, x->dtype, n);
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
        dt_row_narrow((uint16_t *)y->data + start, y->dtype, row, n);
}

/* The types that these functions know. */
static inline dt_status dt_row_check(const dt_tensor *x, const char *op, dt_error *err)
{
    if (x->dtype == DT_F32 || x->dtype == DT_BF16 || x->dtype == DT_F16)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "%s: type '%s' cannot be computed on the cpu: use fp32, bf16 or fp16", op,
                   dt_dtype_name(x->dtype));
}

#endif
