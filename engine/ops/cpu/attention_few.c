#include "engine/ops/cpu/attention_few.h"

#include "engine/ops/cpu/attention_int.h"

#define KEYS 4 /* keys per iteration: independent sums, which hide the latency of the additions */

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

/* Gets rows j .. j + KEYS - 1 as fp32. Rows past the last key repeat the last key. */
static void rows_at(const float **rows, const few_head *h, const place *p, int64_t j)
{
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

    for (int64_t g = 0; g < s->group; g++) {
        place q = place_of(&x->q, b, group * s->group + g);
        float *row = h->q + g * s->d;

        memmove(row, dt_row_read(&q.x, q.first, s->d, row), (size_t)s->d * sizeof *row);
    }
    score(h);
    for (int64_t g = 0; g < s->group; g++) {
        float inverse_sum;

        lse[g] = exponentials(h->scores + g * s->sp, &inverse_sum, h->keys, s->scale);
        for (int64_t j = h->keys.begin; j < h->keys.end; j++)
            h->scores[g * s->sp + j] *= inverse_sum;
    }
    blend(h);
    for (int64_t g = 0; g < s->group; g++)
        scatter(place_in(out, s, b, group * s->group + g), 0, 1, s->d, h->out + g * s->d, s->d,
                h->rows);
}

dt_status DT_CPU_NAME(attention_few)(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                     const dt_qkv *x, const dt_attention_args *args, dt_error *err)
{
    dt_status st = DT_OK;
    shape s = shape_of(x, args);
    int64_t each = s.group * (2 * s.d + s.sp) + KEYS * s.d;
    dt_cpu_scratch scratch;

    DT_ASSERT(s.tq == 1 && args->p == 0);
    DT_TRY(dt_cpu_scratch_take(&scratch, device, each, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, s.b *s.tk *s.heads *s.d))
    {
        dt_cpu_share share = dt_cpu_share_mine(s.b * s.groups, 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t task = share.begin; task < share.end; task++) {
            int64_t b = task / s.groups, group = task % s.groups;
            few_head h = {.s = &s,
                          .k = place_of(&x->k, b, group),
                          .v = place_of(&x->v, b, group),
                          .keys = keys_of(&s, b, 0),
                          .q = mine,
                          .out = mine + s.group * s.d,
                          .scores = mine + 2 * s.group * s.d,
                          .rows = mine + s.group * (2 * s.d + s.sp)};

            attend(&h, x, out, (float *)lse->data + task * s.group, b, group);
            dt_progress_made();
        }
    }
out:
    return st;
}
