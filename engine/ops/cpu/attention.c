/* attention, forward: dropout(softmax(q k^T / sqrt(D)), p) v per head, causal or full.
 *
 * Formula    S = q k^T / sqrt(D), P = exp(S - lse), out = (M P) v with M the dropout mask: 0, or
 *            1/(1-p). Rows of out are divided by the sum of their exponentials: cheaper than to
 *            divide those of P, and the largest of these is exactly 1 where they are rounded
 * Queries    those of the last rows of qkv, as many as out has: all of a pass, or what a sequence
 *            has grown by
 * Scratch    3 T D floats a thread, and BLOCK T
 */
#include "engine/ops/cpu/attention_int.h"

#include "base/banned.h"

/* Scores of one query against its keys, yet without their scale, become exponentials, the largest
 * of them 1, and zeros up to `width`. Returns the log-sum-exp of the scores. */
static float softmax_row(float *row, float *inverse_sum, int64_t keys, int64_t width, float scale)
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
    float *rows;          /* T x D: a part of the head as it came */
    float *keys, *values; /* panels of k^T (D deep) and of v (T deep) */
    float *scores;        /* BLOCK x Tp, rows sp apart */
    float *uniforms;      /* of one query, where there is dropout */
    float *out;           /* BLOCK x Dp */
} forward_buffers;

static int64_t forward_floats(const shape *s)
{
    return s->t * s->d + s->d * s->tp + s->t * s->dp + BLOCK * (s->sp + s->dp) +
           dt_dropout_floats(s->t);
}

static forward_buffers forward_cut(float *mine, const shape *s)
{
    forward_buffers u;

    u.keys = mine;
    u.values = u.keys + s->d * s->tp;
    u.scores = u.values + s->t * s->dp;
    u.out = u.scores + BLOCK * s->sp;
    u.rows = u.out + BLOCK * s->dp;
    u.uniforms = u.rows + s->t * s->d;
    return u;
}

static void forward_head(dt_tensor *out, float *lse, const dt_tensor *qkv, const shape *s,
                         const dt_dropout *dropout, int64_t task, forward_buffers u)
{
    place q = place_of(qkv, s, task, 0), k = place_of(qkv, s, task, 1);
    place v = place_of(qkv, s, task, 2), o = place_of(out, s, task, 0);
    int64_t queries = out->dim[1], first = s->t - queries;
    int64_t d = words(s, s->d), t = words(s, s->t);

    o.first -= task / s->heads * first * s->c; /* out has fewer rows a sequence */
    gather(u.rows, qkv, k, 0, s->t, s);
    pack_transposed(u.keys, u.rows, s->t, s);
    gather(u.rows, qkv, v, 0, s->t, s);
    pack(u.values, t, u.rows, s->t, s);
    for (int64_t i = first; i < s->t; i += BLOCK) {
        int64_t rows = dt_cpu_min(BLOCK, s->t - i), keys = keys_of(s, i + rows - 1);
        int64_t width = dt_cpu_round_up(keys, COLS);
        float inverse_sums[BLOCK];

        gather(u.rows, qkv, q, i, rows, s);
        dt_tile_product(u.scores, s->sp, u.rows, d, 1, u.keys, d * COLS, rows, keys, d, false,
                        s->pairs);
        for (int64_t r = 0; r < rows; r++) {
            float *row = u.scores + r * s->sp;
            int64_t seen = keys_of(s, i + r);

            lse[i - first + r] = softmax_row(row, &inverse_sums[r], seen, width, s->scale);
            if (dropout->threshold > 0.0f)
                drop_row(row, seen, dropout, mask_start(s, task, i + r), u.uniforms);
            if (s->pairs)
                dt_tile_pair_row(row, width);
        }
        dt_tile_product(u.out, s->dp, u.scores, s->sp, 1, u.values, t * COLS, rows, s->d,
                        words(s, keys), false, s->pairs);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < s->dp; j++)
                u.out[r * s->dp + j] *= inverse_sums[r];
        scatter(out, o, i - first, rows, s->d, u.out, s->dp, u.rows);
    }
}

dt_status DT_CPU_NAME(attention_forward)(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                         const dt_tensor *qkv, const dt_attention_args *args,
                                         dt_error *err)
{
    dt_status st = DT_OK;
    shape s = shape_of(qkv, args);
    dt_dropout dropout = dt_dropout_of(args->p, args->key);
    int64_t queries = out->dim[1];
    dt_cpu_scratch scratch;

    DT_ASSERT(out->ndim == 3 && out->dim[0] == s.b && queries >= 1 && queries <= s.t);
    DT_ASSERT(lse->dtype == DT_F32 && dt_tensor_elems(lse) == s.b * s.heads * queries);
    DT_TRY(dt_row_check(qkv, "attention", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, forward_floats(&s), err));
#pragma omp parallel num_threads(dt_cpu_threads(device, s.b *queries *s.t *s.c))
    {
        dt_cpu_share share = dt_cpu_share_mine(s.b * s.heads, 1);
        forward_buffers buffers = forward_cut(dt_cpu_scratch_mine(scratch), &s);

        for (int64_t task = share.begin; task < share.end; task++) {
            forward_head(out, (float *)lse->data + task * queries, qkv, &s, &dropout, task,
                         buffers);
            dt_progress_made();
        }
    }
out:
    return st;
}
