/* attention: computes the forward pass: one query per sequence, as in generation, or whole sequences.
 *
 * Formula    S = the scores of q k^T (ops.h), P = exp(S - lse), out = (M P) v, where M is the dropout mask with
 *            elements 0 or 1/(1-p). The rows of out are divided by the sum of their exponentials,
 *            not the rows of P: this is cheaper, and the largest element of an unscaled row of P is
 *            exactly 1, so rounding P to 16 bits does not change it
 * Scratch    3 K D + BLOCK K floats per thread
 */
#include "engine/ops/cpu/attention_int.h"
#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/ops.h"

/* attention_few: computes the attention forward pass of one query per sequence, for generation with a KV cache.
 *
 * Method     keys and values are read once, in place, for all query heads that share them: reading them takes
 *            most of the time
 * Tasks      one task is a whole key head of a sequence: results depend neither on the thread count nor on the
 *            other sequences
 * Types      as in attention_int.h; the arithmetic is in fp32
 */

/* Like attention_forward, without dropout. x->q.rows must be 1. */
dt_status DT_CPU_NAME(attention_few)(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                     const dt_qkv *x, const dt_attention_args *args, dt_error *err);

#define KEYS  4 /* keys per iteration: independent sums, which hide the latency of the additions */
#define AHEAD (4 * KEYS) /* keys from those that are read to those that are prefetched */

/* One key head with its query heads. */
typedef struct few_head {
    const shape *s;
    place k, v;
    span keys;
    float *q;      /* group x D */
    float *scores; /* group x K; replaced by their exponentials */
    float *out;    /* group x D */
    float *rows;   /* KEYS x D: scratch for widened keys or values */
} few_head;

/* Prefetches row j of a place, if it has one. */
static void await_row(const few_head *h, const place *p, int64_t j)
{
    size_t bytes = dt_dtype_bytes(p->x.dtype);
    const char *row = (const char *)p->x.data + (size_t)(p->first + j * p->stride) * bytes;

    for (size_t at = 0; j < h->keys.end && at < (size_t)h->s->d * bytes; at += LINE * sizeof(float))
        __builtin_prefetch(row + at);
}

/* Gets rows j .. j + KEYS - 1 as fp32. Rows past the last key repeat the last key. Prefetches the rows AHEAD of them. */
static void rows_at(const float **rows, const few_head *h, const place *p, int64_t j)
{
    for (int64_t i = 0; i < KEYS; i++)
        await_row(h, p, j + AHEAD + i);
    for (int64_t i = 0; i < KEYS; i++) {
        int64_t row = dt_cpu_min(j + i, h->keys.end - 1);

        rows[i] = dt_row_read(&p->x, p->first + row * p->stride, h->s->d, h->rows + i * h->s->d);
    }
}

static inline void multiply(float *sums, const float *q, const float *const *k, int64_t d)
{
    const float *k0 = k[0], *k1 = k[1], *k2 = k[2], *k3 = k[3];
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;

#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t i = 0; i < d; i++) {
        s0 += q[i] * k0[i];
        s1 += q[i] * k1[i];
        s2 += q[i] * k2[i];
        s3 += q[i] * k3[i];
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

static void score(const few_head *h)
{
    const float *rows[KEYS];
    float sums[KEYS];

    for (int64_t j = h->keys.begin; j < h->keys.end; j += KEYS) {
        rows_at(rows, h, &h->k, j);
        for (int64_t g = 0; g < h->s->group; g++) {
            float *scores = h->scores + g * h->s->sp;

            multiply(sums, h->q + g * h->s->d, rows, h->s->d);
            for (int64_t i = 0; i < KEYS && j + i < h->keys.end; i++)
                scores[j + i] = sums[i];
        }
    }
}

/* Replaces the scores of one row by their exponentials; returns their log-sum-exp. */
static float exponentials(float *row, float *inverse_sum, span keys, float scale)
{
    float max = row[keys.begin], sum = 0.0f;

#pragma omp simd reduction(max : max)
    for (int64_t j = keys.begin; j < keys.end; j++)
        max = row[j] > max ? row[j] : max;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = keys.begin; j < keys.end; j++) {
        row[j] = dt_exp((row[j] - max) * scale);
        sum += row[j];
    }
    *inverse_sum = 1.0f / sum;
    return max * scale + logf(sum);
}

static inline void add_values(float *out, const float *p, const float *const *v, int64_t d)
{
    const float *v0 = v[0], *v1 = v[1], *v2 = v[2], *v3 = v[3];
    float p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];

#pragma omp simd
    for (int64_t i = 0; i < d; i++)
        out[i] += p0 * v0[i] + p1 * v1[i] + (p2 * v2[i] + p3 * v3[i]);
}

static void blend(const few_head *h)
{
    const float *rows[KEYS];

    memset(h->out, 0, (size_t)(h->s->group * h->s->d) * sizeof *h->out);
    for (int64_t j = h->keys.begin; j < h->keys.end; j += KEYS) {
        rows_at(rows, h, &h->v, j);
        for (int64_t g = 0; g < h->s->group; g++) {
            const float *scores = h->scores + g * h->s->sp + j;
            float p[KEYS] = {0};

            for (int64_t i = 0; i < KEYS && j + i < h->keys.end; i++)
                p[i] = scores[i];
            add_values(h->out + g * h->s->d, p, rows, h->s->d);
        }
    }
}

static void attend(const few_head *h, const dt_qkv *x, dt_tensor *out, float *lse, int64_t b,
                   int64_t group)
{
    const shape *s = h->s;

    for (int64_t i = 0; i < AHEAD; i++) {
        await_row(h, &h->k, h->keys.begin + i);
        await_row(h, &h->v, h->keys.begin + i);
    }
    for (int64_t g = 0; g < s->group; g++) {
        place q = place_of(&x->q, b, group * s->group + g);
        float *row = h->q + g * s->d;

        memmove(row, dt_row_read(&q.x, q.first, s->d, row), (size_t)s->d * sizeof *row);
    }
    score(h);
    for (int64_t g = 0; g < s->group; g++) {
        float inverse_sum;

        if (s->softcap > 0.0f)
            cap_scores(h->scores + g * s->sp + h->keys.begin, h->keys.end - h->keys.begin, s);
        lse[g] = exponentials(h->scores + g * s->sp, &inverse_sum, h->keys, s->scale);
        for (int64_t j = h->keys.begin; j < h->keys.end; j++)
            h->scores[g * s->sp + j] *= inverse_sum;
    }
    blend(h);
    for (int64_t g = 0; g < s->group; g++)
        scatter(place_in(out, s, b, group * s->group + g), 0, 1, s->d, h->out + g * s->d, s->d,
                h->rows);
}

/* All key heads with their query heads, of all sequences. */
typedef struct few_heads {
    const shape *s;
    const dt_qkv *x;
    dt_tensor *out, *lse;
    dt_cpu_scratch scratch;
} few_heads;

/* Implements dt_cpu_piece: one key head of a sequence. */
static void run_head(void *self, int thread, int64_t piece)
{
    const few_heads *all = self;
    const shape *s = all->s;
    int64_t b = piece / s->groups, group = piece % s->groups;
    float *mine = all->scratch.base + (size_t)thread * all->scratch.stride;
    few_head h = {.s = s,
                  .k = place_of(&all->x->k, b, group),
                  .v = place_of(&all->x->v, b, group),
                  .keys = keys_of(s, b, 0),
                  .q = mine,
                  .out = mine + s->group * s->d,
                  .scores = mine + 2 * s->group * s->d,
                  .rows = mine + s->group * (2 * s->d + s->sp)};

    attend(&h, all->x, all->out, (float *)all->lse->data + piece * s->group, b, group);
    dt_progress_made();
}

dt_status DT_CPU_NAME(attention_few)(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                     const dt_qkv *x, const dt_attention_args *args, dt_error *err)
{
    dt_status st = DT_OK;
    shape s = shape_of(x, args);
    int64_t each = s.group * (2 * s.d + s.sp) + KEYS * s.d, work = s.b * s.tk * s.heads * s.d;
    few_heads all = {.s = &s, .x = x, .out = out, .lse = lse};

    DT_ASSERT(s.tq == 1 && args->p == 0);
    DT_TRY(dt_cpu_scratch_take(&all.scratch, device, each, err));
    if (s.b == 1 &&
        !(x->q.dtype == DT_BF16 && dt_cpu_amx_offered())) { /* as the products of this row */
        DT_TRY(dt_cpu_pieces_run(device, work, run_head, &all, s.groups, (dt_cpu_coming){0}, err));
        goto out;
    }
#pragma omp parallel num_threads(dt_cpu_threads(device, work))
    {
        dt_cpu_share share = dt_cpu_share_mine(s.b * s.groups, 1);

        for (int64_t task = share.begin; task < share.end; task++)
            run_head(&all, omp_get_thread_num(), task);
    }
out:
    return st;
}

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

        if (s->softcap > 0.0f)
            cap_scores(row + here.begin, here.end - here.begin, s);
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
