/* attention_int: what the two directions of attention share: the shape of a call, and the way of a
 * head's rows to and from fp32.
 *
 * Words      heads of bf16 are multiplied as they are, in pairs (tile_int.h), where the copy of the
 *            ops can: probabilities and gradients of scores are then rounded to bf16 before they
 *            are, too. All else is widened to fp32. Sums and softmax are in fp32 always
 * Tasks      a head of a sequence is one task, whole: its rows are laid out once in the thread's
 *            scratch, and all that it writes is its own, so results do not depend on the
 *            thread count. Queries are taken in blocks of BLOCK rows, against the keys that the
 *            block's last row sees: causal, the half above the diagonal is skipped by blocks.
 */
#ifndef DT_ENGINE_OPS_CPU_ATTENTION_INT_H
#define DT_ENGINE_OPS_CPU_ATTENTION_INT_H

#include <math.h>

#include "engine/ops/cpu/dropout_int.h"
#include "engine/ops/cpu/math_int.h"
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"
#include "engine/ops/cpu/tile_int.h"

#define BLOCK 32
#define COLS  DT_TILE_COLS
#define LINE  16 /* floats of a cache line */

typedef struct shape {
    int64_t b, t, c, heads, d;
    int64_t tp, dp; /* T and D in whole panels */
    int64_t sp;     /* from one row of scores to the next */
    float scale;    /* 1 / sqrt(D), of a score */
    bool causal;
    bool pairs; /* of bf16 */
} shape;

static inline shape shape_of(const dt_tensor *qkv, const dt_attention_args *args)
{
    int64_t c = dt_tensor_cols(qkv) / 3;
    shape s = {.b = qkv->dim[0],
               .t = qkv->dim[1],
               .c = c,
               .heads = args->heads,
               .d = c / args->heads,
               .causal = args->causal};

    DT_ASSERT(qkv->ndim == 3 && dt_tensor_cols(qkv) == 3 * c && s.d * s.heads == c);
    s.tp = dt_cpu_round_up(s.t, COLS);
    s.sp = s.tp + LINE; /* rows 4096 bytes apart would share the sets of the first-level cache */
    s.dp = dt_cpu_round_up(s.d, COLS);
    s.scale = (float)(1.0 / sqrt((double)s.d));
    s.pairs = DT_TILE_PAIRS && qkv->dtype == DT_BF16 && s.d % 2 == 0;
    return s;
}

/* How many keys a query sees, from the first on. */
static inline int64_t keys_of(const shape *s, int64_t query)
{
    return s->causal ? query + 1 : s->t;
}

/* What n elements take. */
static inline int64_t words(const shape *s, int64_t n)
{
    return s->pairs ? (n + 1) / 2 : n;
}

/* Where a head's rows lie in x: row i of sequence b starts at element first + i * stride. */
typedef struct place {
    int64_t first, stride;
} place;

/* part: 0 q, 1 k, 2 v of a tensor that is 3C wide; 0 of one that is C wide. */
static inline place place_of(const dt_tensor *x, const shape *s, int64_t task, int64_t part)
{
    int64_t b = task / s->heads, head = task % s->heads, stride = dt_tensor_cols(x);
    place p = {b * s->t * stride + part * s->c + head * s->d, stride};

    return p;
}

/* Rows i .. i+rows of a head, dense. */
static inline void gather(float *out, const dt_tensor *x, place p, int64_t i, int64_t rows,
                          const shape *s)
{
    for (int64_t r = 0; r < rows; r++, out += words(s, s->d)) {
        int64_t start = p.first + (i + r) * p.stride;
        const float *row = out;

        if (s->pairs)
            memcpy(out, (const uint16_t *)x->data + start, (size_t)s->d * sizeof(uint16_t));
        else
            row = dt_row_read(x, start, s->d, out);
        if (row != out)
            memcpy(out, row, (size_t)s->d * sizeof *out);
    }
}

/* Gathered rows in panels: their elements deep, or as many rows. */
static inline void pack_transposed(float *out, const float *in, int64_t rows, const shape *s)
{
    int64_t depth = words(s, s->d);

    dt_tile_pack_transposed(out, depth, in, depth, depth, rows);
}

static inline void pack(float *out, int64_t depth, const float *in, int64_t rows, const shape *s)
{
    (s->pairs ? dt_tile_pack_pairs : dt_tile_pack)(out, depth, in, words(s, s->d), rows, s->d);
}

/* The way back, from rows that are `stride` apart. */
static inline void scatter(dt_tensor *x, place p, int64_t i, int64_t rows, int64_t d,
                           const float *in, int64_t stride, float *scratch)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t start = p.first + (i + r) * p.stride;
        float *row = dt_row_open(x, start, scratch);

        memcpy(row, in + r * stride, (size_t)d * sizeof *row);
        dt_row_close(x, start, d, row);
    }
}

/* The part of a query's row that is computed: its keys in whole panels. What lies beyond them is
 * put at minus infinity, whose exponential is 0: vectors without a remainder. Rows of a block are
 * as wide as its last one, in whole panels too. */
static inline int64_t mask_row(float *row, int64_t keys)
{
    int64_t computed = dt_cpu_round_up(keys, COLS);

    for (int64_t j = keys; j < computed; j++)
        row[j] = -INFINITY;
    return computed;
}

/* Element of the dropout mask (ops.h) at a query's first key. */
static inline int64_t mask_start(const shape *s, int64_t task, int64_t query)
{
    return (task * s->t + query) * s->t;
}

#endif
