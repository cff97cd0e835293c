/* attention_int: what the two directions of attention share: the shape of a call, which keys a query
 * sees, and the way of a head's rows to and from fp32.
 *
 * Words      heads of bf16 are multiplied as they are, in pairs (tile_int.h), where the copy of the
 *            ops can: probabilities and gradients of scores are then rounded to bf16 before they
 *            are, too. All else is widened to fp32. Sums and softmax are in fp32 always
 * Tasks      a head of a sequence is one task, whole: its rows are laid out once in the thread's
 *            scratch, and all that it writes is its own, so results do not depend on the
 *            thread count. Forward it is a head of queries, backward one of keys, with all heads of
 *            queries that go with it. Queries are taken in blocks of BLOCK rows, against the panels
 *            of keys from the first that a row of the block sees to the last.
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
    int64_t b, heads, d;
    int64_t groups, group; /* heads of keys, and heads of queries for each */
    int64_t tq, tk;        /* queries and keys of a sequence */
    int64_t tkp, dp;       /* T of the keys and D in whole panels */
    int64_t sp;            /* from one row of scores to the next */
    float scale;           /* 1 / sqrt(D), of a score */
    dt_mask_kind mask;
    const int32_t *starts;  /* (B,K), of segments */
    const int32_t *lengths; /* (B) */
    bool pairs;             /* of bf16 */
} shape;

static inline bool fits(const dt_heads *x, const shape *s, int64_t rows, int64_t heads)
{
    return x->batch == s->b && x->rows == rows && x->heads == heads && x->width == s->d;
}

static inline shape shape_of(const dt_qkv *x, const dt_attention_args *args)
{
    shape s = {.b = x->q.batch,
               .heads = x->q.heads,
               .d = x->q.width,
               .groups = x->k.heads,
               .group = x->q.heads / x->k.heads,
               .tq = x->q.rows,
               .tk = x->k.rows,
               .mask = args->mask};

    DT_ASSERT(s.group * s.groups == s.heads && fits(&x->k, &s, s.tk, s.groups) &&
              fits(&x->v, &s, s.tk, s.groups) && x->k.dtype == x->q.dtype &&
              x->v.dtype == x->q.dtype);
    DT_ASSERT(s.mask == DT_MASK_FULL || s.mask == DT_MASK_LENGTHS || s.tq <= s.tk);
    if (s.mask == DT_MASK_SEGMENTS) {
        DT_ASSERT(args->segment_starts.dtype == DT_I32 &&
                  dt_tensor_elems(&args->segment_starts) == s.b * s.tk);
        s.starts = args->segment_starts.data;
    }
    if (s.mask == DT_MASK_LENGTHS) {
        DT_ASSERT(args->key_lengths.dtype == DT_I32 && dt_tensor_elems(&args->key_lengths) == s.b);
        s.lengths = args->key_lengths.data;
    }
    s.tkp = dt_cpu_round_up(s.tk, COLS);
    s.sp = s.tkp + LINE; /* rows 4096 bytes apart would share the sets of the first-level cache */
    s.dp = dt_cpu_round_up(s.d, COLS);
    s.scale = (float)(1.0 / sqrt((double)s.d));
    s.pairs = DT_TILE_PAIRS && x->q.dtype == DT_BF16 && s.d % 2 == 0;
    return s;
}

/* The keys that a query sees: begin <= key < end. */
typedef struct span {
    int64_t begin, end;
} span;

static inline span keys_of(const shape *s, int64_t sequence, int64_t query)
{
    int64_t at = query + s->tk - s->tq;
    span keys = {0, s->mask == DT_MASK_FULL ? s->tk : at + 1};

    if (s->mask == DT_MASK_LENGTHS)
        keys.end = s->lengths[sequence];
    if (s->mask == DT_MASK_SEGMENTS)
        keys.begin = s->starts[sequence * s->tk + at];
    return keys;
}

/* Those that some query of `rows` from `query` on sees, from the beginning of a panel on. */
static inline span keys_of_block(const shape *s, int64_t sequence, int64_t query, int64_t rows)
{
    span keys = {keys_of(s, sequence, query).begin / COLS * COLS,
                 keys_of(s, sequence, query + rows - 1).end};

    return keys;
}

/* The same, counted from key `from` on. */
static inline span within(span keys, int64_t from)
{
    keys.begin -= from;
    keys.end -= from;
    return keys;
}

/* Rows that are gathered at once, at most. */
static inline int64_t rows_most(const shape *s)
{
    return s->tk > BLOCK ? s->tk : BLOCK;
}

/* What n elements take. */
static inline int64_t words(const shape *s, int64_t n)
{
    return s->pairs ? (n + 1) / 2 : n;
}

/* A head's rows in a flat x: row i starts at element first + i * stride. */
typedef struct place {
    dt_tensor x;
    int64_t first, stride;
} place;

static inline place place_of(const dt_heads *x, int64_t sequence, int64_t head)
{
    place p = {{.data = x->data, .dtype = x->dtype},
               sequence * x->sequence_stride + head * x->width,
               x->row_stride};

    return p;
}

/* Of x (B,rows,heads*D), contiguous. */
static inline place place_in(const dt_tensor *x, const shape *s, int64_t sequence, int64_t head)
{
    dt_heads view = dt_heads_of(x, 0, s->heads, s->d);

    return place_of(&view, sequence, head);
}

/* Rows i .. i+rows of a head, dense. */
static inline void gather(float *out, place p, int64_t i, int64_t rows, const shape *s)
{
    for (int64_t r = 0; r < rows; r++, out += words(s, s->d)) {
        int64_t start = p.first + (i + r) * p.stride;
        const float *row = out;

        if (s->pairs)
            memcpy(out, (const uint16_t *)p.x.data + start, (size_t)s->d * sizeof(uint16_t));
        else
            row = dt_row_read(&p.x, start, s->d, out);
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
static inline void scatter(place p, int64_t i, int64_t rows, int64_t d, const float *in,
                           int64_t stride, float *scratch)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t start = p.first + (i + r) * p.stride;
        float *row = dt_row_open(&p.x, start, scratch);

        memcpy(row, in + r * stride, (size_t)d * sizeof *row);
        dt_row_close(&p.x, start, d, row);
    }
}

/* `row` begins with the first key of a panel, `keys` are counted from there. What of it is computed:
 * the keys in whole panels. Those that the query does not see are put at minus infinity, whose
 * exponential is 0: vectors without a remainder. Rows of a block are as wide as its last one, in
 * whole panels too. */
static inline int64_t mask_row(float *row, span keys)
{
    int64_t computed = dt_cpu_round_up(keys.end, COLS);

    for (int64_t j = 0; j < keys.begin; j++)
        row[j] = -INFINITY;
    for (int64_t j = keys.end; j < computed; j++)
        row[j] = -INFINITY;
    return computed;
}

/* Element of the dropout mask (ops.h) at a query's key `key`; head: b*H + h. */
static inline int64_t mask_start(const shape *s, int64_t head, int64_t query, int64_t key)
{
    return (head * s->tq + query) * s->tk + key;
}

#endif
