#include "engine/comm/comm.h"

#include <string.h>

#include "base/error.h"
#include "engine/ops/cpu/half_int.h"

/* Elements summed at once: the partial sum and the next operand fit into the first-level cache. */
#define BLOCK 1024

static size_t block_at(size_t start, size_t elems)
{
    return elems - start < BLOCK ? elems - start : BLOCK;
}

/* --- fp32 and fp64 */

#define DEFINE_SUM(name, type)                                                                \
    static void name##_add(type *out, const type *a, const type *b, size_t elems)             \
    {                                                                                         \
        _Pragma("GCC ivdep") for (size_t i = 0; i < elems; i++) out[i] = a[i] + b[i];         \
    }                                                                                         \
                                                                                              \
    static void name##_two(void *out, const void *a, const void *b, size_t elems)             \
    {                                                                                         \
        name##_add(out, a, b, elems);                                                         \
    }                                                                                         \
                                                                                              \
    static void name##_many(void *out, const void *const *parts, int64_t count, size_t elems) \
    {                                                                                         \
        type sum[BLOCK];                                                                      \
                                                                                              \
        for (size_t start = 0, n; start < elems; start += n) {                                \
            const type *before = (const type *)parts[0] + start;                              \
                                                                                              \
            n = block_at(start, elems);                                                       \
            if (count == 1)                                                                   \
                memmove((type *)out + start, before, n * sizeof(type));                       \
            for (int64_t p = 1; p < count; p++) {                                             \
                type *to = p == count - 1 ? (type *)out + start : sum;                        \
                                                                                              \
                name##_add(to, before, (const type *)parts[p] + start, n);                    \
                before = to;                                                                  \
            }                                                                                 \
        }                                                                                     \
    }

DEFINE_SUM(f32, float)
DEFINE_SUM(f64, double)

/* --- bf16 */

static void bf16_many(void *out, const void *const *parts, int64_t count, size_t elems)
{
    float sum[BLOCK];

    for (size_t start = 0, n; start < elems; start += n) {
        n = block_at(start, elems);
        dt_bf16_widen_row(sum, (const uint16_t *)parts[0] + start, (int64_t)n);
        for (int64_t p = 1; p < count; p++) {
            const uint16_t *part = (const uint16_t *)parts[p] + start;

#pragma omp simd
            for (size_t i = 0; i < n; i++)
                sum[i] += dt_bf16_widen(part[i]);
        }
        dt_bf16_narrow_row((uint16_t *)out + start, sum, (int64_t)n);
    }
}

static void bf16_two(void *out, const void *a, const void *b, size_t elems)
{
    const void *parts[] = {a, b};

    bf16_many(out, parts, 2, elems);
}

const dt_sum dt_sum_f32 = {sizeof(float), f32_two, f32_many};
const dt_sum dt_sum_f64 = {sizeof(double), f64_two, f64_many};
const dt_sum dt_sum_bf16 = {sizeof(uint16_t), bf16_two, bf16_many};

const dt_sum *dt_sum_of(dt_dtype dtype)
{
    DT_ASSERT(dtype == DT_F32 || dtype == DT_BF16);
    return dtype == DT_F32 ? &dt_sum_f32 : &dt_sum_bf16;
}
