/* attention, backward. Probabilities are recomputed from lse, the dropout mask from its key.
 *
 * Formula    P = exp(S - lse) and M as in attention.c
 *            dv = (M P)^T dout    dS = P (M (dout v^T) - delta) with delta = rowsum(P M (dout v^T))
 *            dq = dS k / sqrt(D)  dk = dS^T q / sqrt(D)        (Dao et al. 2022,
 *            https://arxiv.org/abs/2205.14135)
 * delta      equals rowsum(dout out), which is taken where a row of P is never whole. Here it is:
 *            a sum over the row itself owes nothing to the rounding of out
 * Scratch    6 T D floats a thread, and 2 BLOCK T
 */
#include "engine/ops/cpu/attention_int.h"

#include "base/banned.h"

typedef struct backward_buffers {
    float *rows;                   /* T x D: a part of the head as it came */
    float *keys_t, *values_t;      /* panels of k^T and v^T (D deep) */
    float *keys;                   /* panels of k (T deep) */
    float *dkeys, *dvalues;        /* T x Dp */
    float *p, *ds;                 /* BLOCK x Tp, rows sp apart */
    float *q, *dout;               /* BLOCK x D */
    float *q_panels, *dout_panels; /* panels of the two (BLOCK deep) */
    float *dq;                     /* BLOCK x Dp */
    float *uniforms;               /* of one query, where there is dropout */
} backward_buffers;

static int64_t backward_floats(const shape *s)
{
    return s->t * s->d + 2 * s->d * s->tp + 3 * s->t * s->dp + 2 * BLOCK * s->sp +
           2 * BLOCK * s->d + 3 * BLOCK * s->dp + dt_dropout_floats(s->t);
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
    u.ds = u.p + BLOCK * s->sp;
    u.q_panels = u.ds + BLOCK * s->sp;
    u.dout_panels = u.q_panels + BLOCK * s->dp;
    u.dq = u.dout_panels + BLOCK * s->dp;
    u.q = u.dq + BLOCK * s->dp;
    u.dout = u.q + BLOCK * s->d;
    u.rows = u.dout + BLOCK * s->d;
    u.uniforms = u.rows + s->t * s->d;
    return u;
}

/* p: scores of one query → probabilities; ds: dout v^T → gradient of the scores. */
static void backward_row(float *p, float *ds, int64_t keys, int64_t width, float scale, float lse)
{
    int64_t computed = mask_row(p, keys);
    float delta = 0.0f;

#pragma omp simd reduction(+ : delta)
    for (int64_t j = 0; j < computed; j++) {
        p[j] = dt_exp(p[j] * scale - lse);
        delta += p[j] * ds[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < computed; j++)
        ds[j] = p[j] * (ds[j] - delta);
    for (int64_t j = computed; j < width; j++)
        p[j] = ds[j] = 0.0f;
}

/* The same with dropout: p comes out times the mask, as dv needs it. */
static void backward_row_dropped(float *p, float *ds, int64_t keys, int64_t width, float scale,
                                 float lse, const float *uniforms, const dt_dropout *dropout)
{
    float threshold = dropout->threshold, kept = dropout->scale, delta = 0.0f;

#pragma omp simd reduction(+ : delta)
    for (int64_t j = 0; j < keys; j++) {
        p[j] = dt_exp(p[j] * scale - lse);
        ds[j] *= uniforms[j] >= threshold ? kept : 0.0f;
        delta += p[j] * ds[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < keys; j++) {
        ds[j] = p[j] * (ds[j] - delta);
        p[j] *= uniforms[j] >= threshold ? kept : 0.0f;
    }
    for (int64_t j = keys; j < width; j++)
        p[j] = ds[j] = 0.0f;
}

typedef struct backward_tensors {
    dt_tensor *dqkv;
    const dt_tensor *dout, *qkv;
    const float *lse; /* of all heads */
    dt_dropout dropout;
} backward_tensors;

/* Rows of p and ds become pairs: ds of neighbouring keys, where it stands, and both of neighbouring
 * queries, in every other row of p: p in the first, ds in the second. */
static void pair_rows(const shape *s, int64_t rows, int64_t width, backward_buffers u)
{
    if (rows % 2 != 0) {
        memset(u.p + rows * s->sp, 0, (size_t)width * sizeof(float));
        memset(u.ds + rows * s->sp, 0, (size_t)width * sizeof(float));
    }
    for (int64_t r = 0; r < rows; r += 2) {
        float *p = u.p + r * s->sp, *ds = u.ds + r * s->sp;

        dt_tile_pair_rows(p, p, p + s->sp, width);
        dt_tile_pair_rows(p + s->sp, ds, ds + s->sp, width);
        dt_tile_pair_row(ds, width);
        dt_tile_pair_row(ds + s->sp, width);
    }
}

static void backward_block(const backward_tensors *x, const shape *s, int64_t task, int64_t i,
                           backward_buffers u)
{
    int64_t rows = dt_cpu_min(BLOCK, s->t - i), deep = words(s, rows);
    int64_t keys = keys_of(s, i + rows - 1);
    int64_t d = words(s, s->d), block = words(s, BLOCK), width = dt_cpu_round_up(keys, COLS);
    const float *ds_columns = s->pairs ? u.p + s->sp : u.ds;
    int64_t column = s->pairs ? 2 * s->sp : s->sp;
    place q = place_of(x->qkv, s, task, 0), o = place_of(x->dout, s, task, 0);

    gather(u.q, x->qkv, q, i, rows, s);
    gather(u.dout, x->dout, o, i, rows, s);
    pack(u.q_panels, block, u.q, rows, s);
    pack(u.dout_panels, block, u.dout, rows, s);

    dt_tile_product(u.p, s->sp, u.q, d, 1, u.keys_t, d * COLS, rows, keys, d, false, s->pairs);
    dt_tile_product(u.ds, s->sp, u.dout, d, 1, u.values_t, d * COLS, rows, keys, d, false,
                    s->pairs);
    for (int64_t r = 0; r < rows; r++) {
        float *p = u.p + r * s->sp, *ds = u.ds + r * s->sp;
        float lse = x->lse[task * s->t + i + r];
        int64_t mine = keys_of(s, i + r);

        if (x->dropout.threshold > 0.0f)
            backward_row_dropped(
                p, ds, mine, width, s->scale, lse,
                dt_dropout_draw(&x->dropout, mask_start(s, task, i + r), mine, u.uniforms),
                &x->dropout);
        else
            backward_row(p, ds, mine, width, s->scale, lse);
    }
    if (s->pairs)
        pair_rows(s, rows, width, u);

    dt_tile_product(u.dq, s->dp, u.ds, s->sp, 1, u.keys, words(s, s->t) * COLS, rows, s->d,
                    words(s, keys), false, s->pairs);
    for (int64_t j = 0; j < rows * s->dp; j++)
        u.dq[j] *= s->scale;
    scatter(x->dqkv, q, i, rows, s->d, u.dq, s->dp, u.rows);
    dt_tile_product(u.dkeys, s->dp, ds_columns, 1, column, u.q_panels, block * COLS, keys, s->d,
                    deep, true, s->pairs);
    dt_tile_product(u.dvalues, s->dp, u.p, 1, column, u.dout_panels, block * COLS, keys, s->d, deep,
                    true, s->pairs);
}

static void backward_head(const backward_tensors *x, const shape *s, int64_t task,
                          backward_buffers u)
{
    place k = place_of(x->qkv, s, task, 1), v = place_of(x->qkv, s, task, 2);

    gather(u.rows, x->qkv, k, 0, s->t, s);
    pack_transposed(u.keys_t, u.rows, s->t, s);
    pack(u.keys, words(s, s->t), u.rows, s->t, s);
    gather(u.rows, x->qkv, v, 0, s->t, s);
    pack_transposed(u.values_t, u.rows, s->t, s);
    memset(u.dkeys, 0, (size_t)(s->t * s->dp) * sizeof(float));
    memset(u.dvalues, 0, (size_t)(s->t * s->dp) * sizeof(float));
    for (int64_t i = 0; i < s->t; i += BLOCK)
        backward_block(x, s, task, i, u);
    for (int64_t j = 0; j < s->t * s->dp; j++)
        u.dkeys[j] *= s->scale;
    scatter(x->dqkv, k, 0, s->t, s->d, u.dkeys, s->dp, u.rows);
    scatter(x->dqkv, v, 0, s->t, s->d, u.dvalues, s->dp, u.rows);
}

dt_status DT_CPU_NAME(attention_backward)(dt_device *device, dt_tensor *dqkv, const dt_tensor *dout,
                                          const dt_tensor *qkv, const dt_tensor *out,
                                          const dt_tensor *lse, const dt_attention_args *args,
                                          dt_error *err)
{
    dt_status st = DT_OK;
    shape s = shape_of(qkv, args);
    backward_tensors tensors = {dqkv, dout, qkv, lse->data, dt_dropout_of(args->p, args->key)};
    dt_cpu_scratch scratch;

    DT_ASSERT(lse->dtype == DT_F32 && dt_tensor_elems(lse) == s.b * s.heads * s.t);
    DT_TRY(dt_row_check(qkv, "attention", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, backward_floats(&s), err));
#pragma omp parallel num_threads(dt_cpu_threads(device, s.b *s.t *s.t *s.c))
    {
        dt_cpu_share share = dt_cpu_share_mine(s.b * s.heads, 1);
        backward_buffers buffers = backward_cut(dt_cpu_scratch_mine(scratch), &s);

        for (int64_t task = share.begin; task < share.end; task++) {
            backward_head(&tensors, &s, task, buffers);
            dt_progress_made();
        }
    }
out:
    return st;
}
