/* attention_int: shares code between the two directions of attention: the shape of a call, the keys
 * that a query sees, and the copies of a head's rows to and from fp32.
 *
 * Words      bf16 heads are multiplied as pairs (tile_int.h) if the instruction set supports this.
 *            Probabilities and score gradients are then rounded to bf16 before the products. All
 *            other heads are widened to fp32. Sums and softmax are always in fp32
 * AMX        pairs are multiplied by the matrix unit (product.h) if there is one and D is a multiple of 32.
 *            It needs whole tiles: panels of keys and rows of blocks are filled up with zeros
 * Tasks      one task is a whole head of a sequence. Its rows are laid out once in the thread's
 *            scratch, and no other task writes its outputs, so results do not depend on the thread
 *            count. A forward task is one query head; a backward task is one key head with all query
 *            heads that use it. Queries are processed in blocks of rows, against the panels of keys
 *            from the first to the last key that a row of the block sees.
 */
#ifndef DT_ENGINE_OPS_CPU_ATTENTION_INT_H
#define DT_ENGINE_OPS_CPU_ATTENTION_INT_H

#include <math.h>

#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/product.h"
#include "engine/ops/cpu/tile_int.h"

#define BLOCK 64 /* most rows of a block */
#define COLS  DT_TILE_COLS
#define LINE  16 /* floats per cache line */

typedef struct shape {
    int64_t b, heads, d;
    int64_t groups, group;         /* key heads, and query heads per key head */
    int64_t first_head, all_heads; /* of the dropout index */
    int64_t tq, tk;                /* queries and keys per sequence */
    int64_t tkp, dp;               /* tk and D, rounded up to whole panels */
    int64_t kd;     /* words of tk keys in a panel of keys, or more: whole tiles for AMX */
    int64_t block;  /* rows of a block of queries */
    int64_t fill;   /* gathered rows are filled up to a multiple of this */
    int64_t sp;     /* row stride of scores and probabilities, in floats */
    float scale;    /* of the scores */
    float softcap;  /* 0: none */
    int64_t window; /* 0: none */
    dt_mask_kind mask;
    const int32_t *starts;  /* (B,K); SEGMENTS only */
    const int32_t *lengths; /* (B); LENGTHS only */
    bool pairs;             /* bf16 pairs (tile_int.h) */
    bool amx;               /* pairs, multiplied by AMX */
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
               .first_head = args->first_head,
               .all_heads = args->heads > 0 ? args->heads : x->q.heads,
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
    s.sp = s.tkp + LINE; /* a stride of 4096 bytes would map all rows to the same L1 cache sets */
    s.dp = dt_cpu_round_up(s.d, COLS);
    s.scale = (float)(args->scale > 0 ? args->scale : 1.0 / sqrt((double)s.d));
    s.softcap = (float)args->softcap;
    s.window = args->window;
    DT_ASSERT(s.window == 0 || s.mask != DT_MASK_FULL);
    s.pairs = DT_TILE_PAIRS && x->q.dtype == DT_BF16 && s.d % 2 == 0;
    s.amx = s.pairs && s.d % COLS == 0 && dt_cpu_amx_offered();
    s.kd = s.amx ? s.tkp / 2 : s.pairs ? (s.tk + 1) / 2 : s.tk;
    s.block = s.amx ? BLOCK : BLOCK / 2;
    s.fill = s.amx ? COLS : s.pairs ? 2 : 1;
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
    if (s->window > 0 && keys.end - keys.begin > s->window)
        keys.begin = keys.end - s->window;
    return keys;
}

/* Returns the keys that at least one of `rows` queries from `query` on sees, extended down to the
 * start of a panel. */
static inline span keys_of_block(const shape *s, int64_t sequence, int64_t query, int64_t rows)
{
    span keys = {keys_of(s, sequence, query).begin / COLS * COLS,
                 keys_of(s, sequence, query + rows - 1).end};

    return keys;
}

/* Returns the same keys, counted from key `from`. */
static inline span within(span keys, int64_t from)
{
    keys.begin -= from;
    keys.end -= from;
    return keys;
}

/* Returns the largest number of rows that one gather() writes. */
static inline int64_t rows_most(const shape *s)
{
    return s->tkp > BLOCK ? s->tkp : BLOCK;
}

/* Returns the number of words for n elements: two bf16 elements fit one word. */
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

/* Returns a head's rows in the contiguous tensor x (B,rows,heads*D). */
static inline place place_in(const dt_tensor *x, const shape *s, int64_t sequence, int64_t head)
{
    dt_heads view = dt_heads_of(x, 0, s->heads, s->d);

    return place_of(&view, sequence, head);
}

/* Copies rows i .. i + rows - 1 of a head to `out`, contiguous, as words, and fills them up with zeros. */
static inline void gather(float *out, place p, int64_t i, int64_t rows, const shape *s)
{
    int64_t filled = dt_cpu_round_up(rows, s->fill);

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
    memset(out, 0, (size_t)((filled - rows) * words(s, s->d)) * sizeof *out);
}

/* Packs the transpose of gathered rows into panels D deep. pack() packs the rows themselves,
 * `depth` deep, with the zeros that fill them up. */
static inline void pack_transposed(float *out, const float *in, int64_t rows, const shape *s)
{
    int64_t depth = words(s, s->d);

    dt_tile_pack_transposed(out, depth, in, depth, depth, rows);
}

static inline void pack(float *out, int64_t depth, const float *in, int64_t rows, const shape *s)
{
    (s->pairs ? dt_tile_pack_pairs : dt_tile_pack)(out, depth, in, words(s, s->d),
                                                   dt_cpu_round_up(rows, s->fill), s->d);
}

/* A thread multiplies between these two calls. */
static inline void begin_products(const shape *s)
{
    if (s->amx)
        dt_cpu_amx_open();
}

static inline void end_products(const shape *s)
{
    if (s->amx)
        dt_cpu_amx_close();
}

/* c(m,n) = a(m,k) b(k,n) in words of the shape. a: element (i,p) at a[i * a_row + p]. b: panels. With AMX the
 * rows and the depth are rounded up to whole tiles. */
static inline void multiply_panels(float *c, int64_t c_row, const float *a, int64_t a_row,
                                   const float *b, int64_t b_panel, int64_t m, int64_t n, int64_t k,
                                   const shape *s)
{
    const dt_cpu_amx_product product = {.c = c,
                                        .a = a,
                                        .b = b,
                                        .m = dt_cpu_round_up(m, DT_CPU_AMX_SIDE),
                                        .n = dt_cpu_round_up(n, COLS),
                                        .k = dt_cpu_round_up(k, DT_CPU_AMX_SIDE),
                                        .c_row = c_row,
                                        .a_row = a_row,
                                        .b_row = COLS,
                                        .b_panel = b_panel};

    if (s->amx)
        dt_cpu_amx_multiply(&product);
    else
        dt_tile_product(c, c_row, a, a_row, 1, b, b_panel, m, n, k, false, s->pairs);
}

/* Copies rows of fp32 that are `stride` floats apart back to rows i .. i + rows - 1 of a head. */
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

/* Sets the scores of the keys that the query does not see to minus infinity, whose exponential is
 * 0. `row` starts at the first key of a panel, and `keys` is counted from there. Returns the width
 * of the row to compute: whole panels, so that vector loops have no remainder. All rows of a block
 * are as wide as its last row, also rounded up to whole panels. */
static inline int64_t mask_row(float *row, span keys)
{
    int64_t computed = dt_cpu_round_up(keys.end, COLS);

    for (int64_t j = 0; j < keys.begin; j++)
        row[j] = -INFINITY;
    for (int64_t j = keys.end; j < computed; j++)
        row[j] = -INFINITY;
    return computed;
}

/* Replaces n unscaled scores by capped ones, divided by the scale, so that they are scaled like others. */
static inline void cap_scores(float *row, int64_t n, const shape *s)
{
    float in = s->scale / s->softcap, out = s->softcap / s->scale;

#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        row[j] = out * dt_tanh(in * row[j]);
}

/* The slope of the cap at each of n unscaled scores. 1 - tanh^2 would cancel where the cap is near. */
static inline void cap_slopes(float *slopes, const float *row, int64_t n, const shape *s)
{
    float in = 2.0f * s->scale / s->softcap;

#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        slopes[j] = 4.0f * dt_sigmoid(in * row[j]) * dt_sigmoid(-in * row[j]);
}

/* Returns a head's number in the dropout index (ops.h). */
static inline int64_t mask_head(const shape *s, int64_t sequence, int64_t head)
{
    return sequence * s->all_heads + s->first_head + head;
}

/* Returns the dropout index of (query, key). head: mask_head(). */
static inline int64_t mask_start(const shape *s, int64_t head, int64_t query, int64_t key)
{
    return (head * s->tq + query) * s->tk + key;
}

#endif
