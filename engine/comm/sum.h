/* sum: declares the sums that collectives use, by element type.
 *
 * Formula    out[i] = ((a0[i] + a1[i]) + a2[i]) + ...: in the order given, so that the same parts
 *            give the same bits. BF16 is summed in fp32 and rounded once per call, to nearest even
 * Aliases    out may be any one of the parts
 */
#ifndef DT_ENGINE_COMM_SUM_H
#define DT_ENGINE_COMM_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_sum {
    size_t elem_bytes;
    void (*two)(void *out, const void *a, const void *b, size_t elems);
    /* sums several operands; count >= 1 */
    void (*many)(void *out, const void *const *parts, int64_t count, size_t elems);
} dt_sum;

extern const dt_sum dt_sum_f32, dt_sum_f64, dt_sum_bf16;

const dt_sum *dt_sum_of(dt_dtype dtype); /* The sum for F32 or BF16. */

#ifdef __cplusplus
}
#endif
#endif
