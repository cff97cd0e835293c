/* attention: computes the forward pass, dropout(softmax(q k^T / sqrt(D)), p) v for each head.
 *
 * Formula    S = q k^T / sqrt(D), P = exp(S - lse), out = (M P) v, where M is the dropout mask with
 *            elements 0 or 1/(1-p). The rows of out are divided by the sum of their exponentials,
 *            not the rows of P: this is cheaper, and the largest element of an unscaled row of P is
 *            exactly 1, so rounding P to 16 bits does not change it
 * Scratch    3 K D + BLOCK K floats per thread
 */
#include "engine/ops/cpu/attention_few.h"
#include "engine/ops/cpu/attention_int.h"

/* Turns the unscaled scores of one query into exponentials, the largest of which is 1, and writes
 * zeros after the keys up to `width`. Returns the log-sum-exp of the scaled scores. */
static float softmax_row(float *row, float *inverse_sum, span keys, int64_t width, float scale)
{
    int64_t computed = mask_row(row, keys);
    float max = row[0], sum = 0.0f;

#pragma omp simd reduction(max : max)
    for (int64_t j = 0; j < computed; j++)
        max = row[j] > max ? row[j] : max;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < computed; j++) {
        row[j] = dt_exp((row[j] - max) * scale);
        sum += row[j];
    }
    for (int64_t j = computed; j < width; j++)
        row[j] = 0.0f;
    *inverse_sum = 1.0f / sum;
    return max * scale + logf(sum);
}

static void drop_row(float *row, int64_t keys, const dt_dropout *dropout, int64_t start,
                     float *scratch)
{
    const float *uniforms = dt_dropout_draw(dropout, start, keys, scratch);
    float threshold = dropout->threshold, scale = dropout->scale;

#pragma omp simd
    for (int64_t j = 0; j < keys; j++)
        row[j] = uniforms[j] >= threshold ? row[j] * scale : 0.0f;
}

typedef struct forward_buffers {
    float *rows;          /* K x D or BLOCK x D: rows of the head as gathered */
    float *keys, *values; /* panels of k^T (D deep) and of v (K deep) */
    float *scores;        /* BLOCK x Kp, rows sp apart */
    float *uniforms;      /* uniform numbers of one query; used only with dropout */
    float *out;           /* BLOCK x Dp */
} forward_buffers;

static int64_t forward_floats(const shape *s)
{
    return rows_most(s) * s->d + s->d * s->tkp + s->tkp * s->dp + BLOCK * (s->sp + s->dp) +
           dt_dropout_floats(s->tk);
}

static forward_buffers forward_cut(float *mine, const shape *s)
{
    forward_buffers u;

    u.keys = mine;
    u.values = u.keys + s->d * s->tkp;
    u.scores = u.values + s->tkp * s->dp;
    u.out = u.scores + BLOCK * s->sp;
    u.rows = u.out + BLOCK * s->dp;
    u.uniforms = u.rows + rows_most(s) * s->d;
    return u;
}

/* One query head. */
typedef struct forward_head {
    place q, k, v, out;
    float *lse;
    const dt_dropout *dropout;
    int64_t sequence, head; /* head: mask_head() */
} forward_head;

static void forward_block(const forward_head *h, const shape *s, int64_t i, forward_buffers u)
{
    int64_t rows = dt_cpu_min(s->block, s->tq - i), d = words(s, s->d);
    span keys = keys_of_block(s, h->sequence, i, rows);
    int64_t count = keys.end - keys.begin, width = dt_cpu_round_up(count, COLS);
    float inverse_sums[BLOCK];

    gather(u.rows, h->q, i, rows, s);
    multiply_panels(u.scores, s->sp, u.rows, d, u.keys + keys.begin * d, d * COLS, rows, count, d,
                    s);
    for (int64_t r = 0; r < rows; r++) {
        float *row = u.scores + r * s->sp;
        span seen = keys_of(s, h->sequence, i + r), here = within(seen, keys.begin);

        h->lse[i + r] = softmax_row(row, &inverse_sums[r], here, width, s->scale);
        if (h->dropout->threshold > 0.0f)
            drop_row(row + here.begin, here.end - here.begin, h->dropout,
                     mask_start(s, h->head, i + r, seen.begin), u.uniforms);
        if (s->pairs)
            dt_tile_pair_row(row, width);
    }
    multiply_panels(u.out, s->dp, u.scores, s->sp, u.values + words(s, keys.begin) * COLS,
                    s->kd * COLS, rows, s->d, words(s, count), s);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < s->dp; j++)
            u.out[r * s->dp + j] *= inverse_sums[r];
    scatter(h->out, i, rows, s->d, u.out, s->dp, u.rows);
}

static void forward_head_of(const forward_head *h, const shape *s, forward_buffers u)
{
    gather(u.rows, h->k, 0, s->tk, s);
    pack_transposed(u.keys, u.rows, s->tk, s);
    gather(u.rows, h->v, 0, s->tk, s);
    pack(u.values, s->kd, u.rows, s->tk, s);
    for (int64_t i = 0; i < s->tq; i += s->block)
        forward_block(h, s, i, u);
}

dt_status DT_CPU_NAME(attention_forward)(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                         const dt_qkv *x, const dt_attention_args *args,
                                         dt_error *err)
{
    dt_status st = DT_OK;
    shape s = shape_of(x, args);
    dt_dropout dropout = dt_dropout_of(args->p, args->key);
    dt_cpu_scratch scratch;

    DT_ASSERT(out->ndim == 3 && dt_tensor_elems(out) == s.b * s.tq * s.heads * s.d);
    DT_ASSERT(lse->dtype == DT_F32 && dt_tensor_elems(lse) == s.b * s.heads * s.tq);
    DT_TRY(dt_row_check(out, "attention", err));
    if (s.tq == 1 && args->p == 0)
        return DT_CPU_NAME(attention_few)(device, out, lse, x, args, err);
    DT_TRY(dt_cpu_scratch_take(&scratch, device, forward_floats(&s), err));
#pragma omp parallel num_threads(dt_cpu_threads(device, s.b *s.tq *s.tk *s.heads *s.d))
    {
        dt_cpu_share share = dt_cpu_share_mine(s.b * s.heads, 1);
        forward_buffers buffers = forward_cut(dt_cpu_scratch_mine(scratch), &s);

        begin_products(&s);
        for (int64_t task = share.begin; task < share.end; task++) {
            int64_t b = task / s.heads, head = task % s.heads;
            forward_head h = {.q = place_of(&x->q, b, head),
                              .k = place_of(&x->k, b, head / s.group),
                              .v = place_of(&x->v, b, head / s.group),
                              .out = place_in(out, &s, b, head),
                              .lse = (float *)lse->data + task * s.tq,
                              .dropout = &dropout,
                              .sequence = b,
                              .head = mask_head(&s, b, head)};

            forward_head_of(&h, &s, buffers);
            dt_progress_made();
        }
        end_products(&s);
    }
out:
    return st;
}
