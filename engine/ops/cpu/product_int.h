/* product_int: what our own products of bf16 numbers share: their operands, how c is cut into blocks, and how sums are
 * written. Only for files that are compiled for AVX-512.
 */
#ifndef DT_ENGINE_OPS_CPU_PRODUCT_INT_H
#define DT_ENGINE_OPS_CPU_PRODUCT_INT_H

#include <immintrin.h>

#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/cpu/product.h"

#define DT_PRODUCT_LANES 16 /* floats in a register */
#define DT_PRODUCT_STEP  32 /* rows and columns of c are cut in multiples */
#define DT_PRODUCT_BLOCK 384 /* most rows and columns of a block of c: 576 KiB of sums in L2 */

typedef struct dt_product_operand {
    const uint16_t *data;
    int64_t count;  /* rows of a, or columns of b */
    int64_t stride; /* elements from one stored row to the next */
    bool along_k;   /* whether values of k are neighbours in memory */
} dt_product_operand;

static inline dt_product_operand dt_product_a(const dt_cpu_product *p, const void *a)
{
    return (dt_product_operand){a, p->m, p->a_transposed ? p->m : p->k, !p->a_transposed};
}

static inline dt_product_operand dt_product_b(const dt_cpu_product *p, const void *b)
{
    return (dt_product_operand){b, p->n, p->b_transposed ? p->k : p->n, p->b_transposed};
}

/* Returns how many are left from `from` on, `most` at most. */
static inline int64_t dt_product_left(int64_t count, int64_t from, int64_t most)
{
    return count - from < most ? (count - from > 0 ? count - from : 0) : most;
}

/* Writes 16 columns of a row of c, or fewer: the sums, with bias and old values. */
static inline void dt_product_write(const dt_cpu_product *product, void *c, int64_t at, __m512 sum,
                                    const uint16_t *bias, __mmask16 some)
{
    if (bias != NULL)
        sum = _mm512_add_ps(sum,
                            (__m512)_mm512_slli_epi32(
                                _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, bias)), 16));
    if (product->accumulate)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(some, (float *)c + at));
    if (product->c_type == DT_F32)
        _mm512_mask_storeu_ps((float *)c + at, some, sum);
    else
        _mm256_mask_storeu_epi16((uint16_t *)c + at, some, (__m256i)_mm512_cvtneps_pbh(sum));
}

/* How many blocks a side is cut into, and their length: whole steps. */
typedef struct dt_product_cuts {
    int64_t count, length;
} dt_product_cuts;

static inline dt_product_cuts dt_product_cut_side(int64_t side, int64_t most)
{
    int64_t count = (side + most - 1) / most;
    int64_t length = dt_cpu_round_up((side + count - 1) / count, DT_PRODUCT_STEP);

    return (dt_product_cuts){(side + length - 1) / length, length};
}

/* Cuts a part of c so that blocks have at most DT_PRODUCT_BLOCK rows and columns, and every thread gets equally many,
 * as long as they do not become small. */
static inline void dt_product_cut(dt_product_cuts *by_rows, dt_product_cuts *by_columns,
                                  int64_t rows, int64_t columns, int64_t threads)
{
    *by_rows = dt_product_cut_side(rows, DT_PRODUCT_BLOCK);
    *by_columns = dt_product_cut_side(columns, DT_PRODUCT_BLOCK);
    while (by_rows->count * by_columns->count % threads != 0) {
        bool taller = by_rows->length >= by_columns->length;
        dt_product_cuts *longer = taller ? by_rows : by_columns;

        if (longer->length < DT_PRODUCT_BLOCK / 4)
            break;
        *longer = dt_product_cut_side(taller ? rows : columns, longer->length - DT_PRODUCT_STEP);
    }
}

#endif
