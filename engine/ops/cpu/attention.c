/* attention: causal softmax(q k^T / sqrt(D)) v per head, forward and backward.
 *
 * Formula    S = q k^T / sqrt(D), P = exp(S - lse), out = P v
 *            dv = P^T dout        dS = P (dout v^T - delta) with delta = rowsum(dout out)
 *            dq = dS k / sqrt(D)  dk = dS^T q / sqrt(D)        (Dao et al. 2022,
 *            https://arxiv.org/abs/2205.14135)
 * Tasks      a head of a sequence is one task, whole: its rows are widened and laid out once in the
 *            thread's scratch, and all that it writes is its own, so results do not depend on the
 *            thread count. Queries are taken in blocks of BLOCK rows, against the keys up to the
 *            block's last row: the half above the diagonal is skipped by blocks.
 * Scratch    forward 3, backward 6 times T D floats a thread, and 2 BLOCK T
 */
#include <math.h>

#include "engine/ops/cpu/math_int.h"
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"
#include "engine/ops/cpu/tile_int.h"

#include "base/banned.h"

#define BLOCK 32
#define COLS  DT_TILE_COLS

typedef struct shape {
    int64_t b, t, c, heads, d;
    int64_t tp, dp; /* T and D in whole panels */
    float scale;    /* 1 / sqrt(D) */
} shape;

static shape shape_of(const dt_tensor *qkv, int64_t heads)
{
    int64_t c = dt_tensor_cols(qkv) / 3;
    shape s = {.b = qkv->dim[0], .t = qkv->dim[1], .c = c, .heads = heads, .d = c / heads};

    DT_ASSERT(qkv->ndim == 3 && dt_tensor_cols(qkv) == 3 * c && s.d * heads == c);
    s.tp = dt_cpu_round_up(s.t, COLS);
    s.dp = dt_cpu_round_up(s.d, COLS);
    s.scale = (float)(1.0 / sqrt((double)s.d));
    return s;
}

/* Where a head's rows lie in x: row i of sequence b starts at element first + i * stride. */
typedef struct place {
    int64_t first, stride;
} place;

/* part: 0 q, 1 k, 2 v of a tensor that is 3C wide; 0 of one that is C wide. */
static place place_of(const dt_tensor *x, const shape *s, int64_t task, int64_t part)
{
    int64_t b = task / s->heads, head = task % s->heads, stride = dt_tensor_cols(x);
    place p = {b * s->t * stride + part * s->c + head * s->d, stride};

    return p;
}

/* Rows i .. i+rows of a head, dense, in fp32, times scale. */
static void gather(float *out, const dt_tensor *x, place p, int64_t i, int64_t rows, int64_t d,
                   float scale)
{
    for (int64_t r = 0; r < rows; r++, out += d) {
        const float *row = dt_row_read(x, p.first + (i + r) * p.stride, d, out);

#pragma omp simd
        for (int64_t j = 0; j < d; j++)
            out[j] = row[j] * scale;
    }
}

/* The way back, from rows that are `stride` apart. */
static void scatter(dt_tensor *x, place p, int64_t i, int64_t rows, int64_t d, const float *in,
                    int64_t stride, float *scratch)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t start = p.first + (i + r) * p.stride;
        float *row = dt_row_open(x, start, scratch);

        memcpy(row, in + r * stride, (size_t)d * sizeof *row);
        dt_row_close(x, start, d, row);
    }
}

/* The part of a query's row that is computed: its keys in whole panels. What lies beyond them is
 * put at minus infinity, whose exponential is 0: vectors without a remainder. */
static int64_t mask_row(float *row, int64_t keys)
{
    int64_t width = dt_cpu_round_up(keys, COLS);

    for (int64_t j = keys; j < width; j++)
        row[j] = -INFINITY;
    return width;
}

/* Scores of one query against its keys become probabilities, and zeros up to `width`; returns the
 * log-sum-exp. */
static float softmax_row(float *row, int64_t keys, int64_t width)
{
    int64_t computed = mask_row(row, keys);
    float max = row[0], sum = 0.0f, inverse;

#pragma omp simd reduction(max : max)
    for (int64_t j = 0; j < computed; j++)
        max = row[j] > max ? row[j] : max;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < computed; j++) {
        row[j] = dt_exp(row[j] - max);
        sum += row[j];
    }
    inverse = 1.0f / sum;
#pragma omp simd
    for (int64_t j = 0; j < computed; j++)
        row[j] *= inverse;
    for (int64_t j = computed; j < width; j++)
        row[j] = 0.0f;
    return max + logf(sum);
}

/* --- forward --------------------------------------------------------------------------------- */

typedef struct forward_buffers {
    float *rows;          /* T x D: a part of the head as it came */
    float *keys, *values; /* panels of k^T (D deep) and of v (T deep) */
    float *scores;        /* BLOCK x Tp */
    float *out;           /* BLOCK x Dp */
} forward_buffers;

static int64_t forward_floats(const shape *s)
{
    return s->t * s->d + s->d * s->tp + s->t * s->dp + BLOCK * (s->tp + s->dp);
}

static forward_buffers forward_cut(float *mine, const shape *s)
{
    forward_buffers u;

    u.keys = mine;
    u.values = u.keys + s->d * s->tp;
    u.scores = u.values + s->t * s->dp;
    u.out = u.scores + BLOCK * s->tp;
    u.rows = u.out + BLOCK * s->dp;
    return u;
}

static void forward_head(dt_tensor *out, float *lse, const dt_tensor *qkv, const shape *s,
                         int64_t task, forward_buffers u)
{
    place q = place_of(qkv, s, task, 0), k = place_of(qkv, s, task, 1);
    place v = place_of(qkv, s, task, 2), o = place_of(out, s, task, 0);

    gather(u.rows, qkv, k, 0, s->t, s->d, 1.0f);
    dt_tile_pack_transposed(u.keys, s->d, u.rows, s->d, s->d, s->t);
    gather(u.rows, qkv, v, 0, s->t, s->d, 1.0f);
    dt_tile_pack(u.values, s->t, u.rows, s->d, s->t, s->d);
    for (int64_t i = 0; i < s->t; i += BLOCK) {
        int64_t rows = dt_cpu_min(BLOCK, s->t - i), keys = i + rows;

        gather(u.rows, qkv, q, i, rows, s->d, s->scale);
        dt_tile_product(u.scores, s->tp, u.rows, s->d, 1, u.keys, s->d * COLS, rows, keys, s->d,
                        false);
        for (int64_t r = 0; r < rows; r++)
            lse[i + r] = softmax_row(u.scores + r * s->tp, i + r + 1, keys);
        dt_tile_product(u.out, s->dp, u.scores, s->tp, 1, u.values, s->t * COLS, rows, s->d, keys,
                        false);
        scatter(out, o, i, rows, s->d, u.out, s->dp, u.rows);
    }
}

dt_status DT_CPU_NAME(attention_forward)(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                         const dt_tensor *qkv, int64_t heads, double p,
                                         const dt_philox_key *key, dt_error *err)
{
    dt_status st = DT_OK;
    shape s = shape_of(qkv, heads);
    dt_cpu_scratch scratch;

    DT_ASSERT(lse->dtype == DT_F32 && dt_tensor_elems(lse) == s.b * heads * s.t);
    DT_TRY(dt_row_check(qkv, "attention", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, forward_floats(&s), err));
#pragma omp parallel num_threads(dt_cpu_threads(device, s.b *s.t *s.t *s.c))
    {
        dt_cpu_share share = dt_cpu_share_mine(s.b * s.heads, 1);
        forward_buffers buffers = forward_cut(dt_cpu_scratch_mine(scratch), &s);

        for (int64_t task = share.begin; task < share.end; task++)
            forward_head(out, (float *)lse->data + task * s.t, qkv, &s, task, buffers);
    }
out:
    return st;
}

/* --- backward -------------------------------------------------------------------------------- */

typedef struct backward_buffers {
    float *rows;                   /* T x D: a part of the head as it came */
    float *keys_t, *values_t;      /* panels of k^T and v^T (D deep) */
    float *keys;                   /* panels of k (T deep) */
    float *dkeys, *dvalues;        /* T x Dp */
    float *p, *ds;                 /* BLOCK x Tp */
    float *q, *dout;               /* BLOCK x D, q already times scale */
    float *q_panels, *dout_panels; /* panels of the two (BLOCK deep) */
    float *dq;                     /* BLOCK x Dp */
} backward_buffers;

static int64_t backward_floats(const shape *s)
{
    return s->t * s->d + 2 * s->d * s->tp + 3 * s->t * s->dp + 2 * BLOCK * s->tp +
           2 * BLOCK * s->d + 3 * BLOCK * s->dp;
}

static backward_buffers backward_cut(float *mine, const shape *s)
{
    backward_buffers u;

    u.keys_t = mine;
    u.values_t = u.keys_t + s->d * s->tp;
    u.keys = u.values_t + s->d * s->tp;
    u.dkeys = u.keys + s->t * s->dp;
    u.dvalues = u.dkeys + s->t * s->dp;
    u.p = u.dvalues + s->t * s->dp;
    u.ds = u.p + BLOCK * s->tp;
    u.q_panels = u.ds + BLOCK * s->tp;
    u.dout_panels = u.q_panels + BLOCK * s->dp;
    u.dq = u.dout_panels + BLOCK * s->dp;
    u.q = u.dq + BLOCK * s->dp;
    u.dout = u.q + BLOCK * s->d;
    u.rows = u.dout + BLOCK * s->d;
    return u;
}

static float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0.0f;

#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* p: scores of one query → probabilities; ds: dout v^T → gradient of the scores. */
static void backward_row(float *p, float *ds, int64_t keys, int64_t width, float lse, float delta)
{
    int64_t computed = mask_row(p, keys);

#pragma omp simd
    for (int64_t j = 0; j < computed; j++) {
        p[j] = dt_exp(p[j] - lse);
        ds[j] = p[j] * (ds[j] - delta);
    }
    for (int64_t j = computed; j < width; j++)
        p[j] = ds[j] = 0.0f;
}

typedef struct backward_tensors {
    dt_tensor *dqkv;
    const dt_tensor *dout, *qkv, *out;
    const float *lse; /* of all heads */
} backward_tensors;

static void backward_block(const backward_tensors *x, const shape *s, int64_t task, int64_t i,
                           backward_buffers u)
{
    int64_t rows = dt_cpu_min(BLOCK, s->t - i), keys = i + rows, d = s->d;
    place q = place_of(x->qkv, s, task, 0), o = place_of(x->out, s, task, 0);

    gather(u.q, x->qkv, q, i, rows, d, s->scale);
    gather(u.dout, x->dout, o, i, rows, d, 1.0f);
    gather(u.rows, x->out, o, i, rows, d, 1.0f);
    dt_tile_pack(u.q_panels, BLOCK, u.q, d, rows, d);
    dt_tile_pack(u.dout_panels, BLOCK, u.dout, d, rows, d);

    dt_tile_product(u.p, s->tp, u.q, d, 1, u.keys_t, d * COLS, rows, keys, d, false);
    dt_tile_product(u.ds, s->tp, u.dout, d, 1, u.values_t, d * COLS, rows, keys, d, false);
    for (int64_t r = 0; r < rows; r++)
        backward_row(u.p + r * s->tp, u.ds + r * s->tp, i + r + 1, keys,
                     x->lse[task * s->t + i + r], dot(u.dout + r * d, u.rows + r * d, d));

    dt_tile_product(u.dq, s->dp, u.ds, s->tp, 1, u.keys, s->t * COLS, rows, d, keys, false);
    for (int64_t j = 0; j < rows * s->dp; j++)
        u.dq[j] *= s->scale;
    scatter(x->dqkv, q, i, rows, d, u.dq, s->dp, u.rows);
    dt_tile_product(u.dkeys, s->dp, u.ds, 1, s->tp, u.q_panels, BLOCK * COLS, keys, d, rows, true);
    dt_tile_product(u.dvalues, s->dp, u.p, 1, s->tp, u.dout_panels, BLOCK * COLS, keys, d, rows,
                    true);
}

static void backward_head(const backward_tensors *x, const shape *s, int64_t task,
                          backward_buffers u)
{
    place k = place_of(x->qkv, s, task, 1), v = place_of(x->qkv, s, task, 2);

    gather(u.rows, x->qkv, k, 0, s->t, s->d, 1.0f);
    dt_tile_pack_transposed(u.keys_t, s->d, u.rows, s->d, s->d, s->t);
    dt_tile_pack(u.keys, s->t, u.rows, s->d, s->t, s->d);
    gather(u.rows, x->qkv, v, 0, s->t, s->d, 1.0f);
    dt_tile_pack_transposed(u.values_t, s->d, u.rows, s->d, s->d, s->t);
    memset(u.dkeys, 0, (size_t)(s->t * s->dp) * sizeof(float));
    memset(u.dvalues, 0, (size_t)(s->t * s->dp) * sizeof(float));
    for (int64_t i = 0; i < s->t; i += BLOCK)
        backward_block(x, s, task, i, u);
    scatter(x->dqkv, k, 0, s->t, s->d, u.dkeys, s->dp, u.rows);
    scatter(x->dqkv, v, 0, s->t, s->d, u.dvalues, s->dp, u.rows);
}

dt_status DT_CPU_NAME(attention_backward)(dt_device *device, dt_tensor *dqkv, const dt_tensor *dout,
                                          const dt_tensor *qkv, const dt_tensor *out,
                                          const dt_tensor *lse, int64_t heads, double p,
                                          const dt_philox_key *key, dt_error *err)
{
    dt_status st = DT_OK;
    shape s = shape_of(qkv, heads);
    backward_tensors tensors = {dqkv, dout, qkv, out, lse->data};
    dt_cpu_scratch scratch;

    DT_ASSERT(lse->dtype == DT_F32 && dt_tensor_elems(lse) == s.b * heads * s.t);
    DT_TRY(dt_row_check(qkv, "attention", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, backward_floats(&s), err));
#pragma omp parallel num_threads(dt_cpu_threads(device, s.b *s.t *s.t *s.c))
    {
        dt_cpu_share share = dt_cpu_share_mine(s.b * s.heads, 1);
        backward_buffers buffers = backward_cut(dt_cpu_scratch_mine(scratch), &s);

        for (int64_t task = share.begin; task < share.end; task++)
            backward_head(&tensors, &s, task, buffers);
    }
out:
    return st;
}
