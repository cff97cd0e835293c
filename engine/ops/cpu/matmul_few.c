#include "engine/ops/cpu/matmul_few.h"

#include "engine/ops/cpu/rows_int.h"

#include "base/banned.h"

#define OUTPUTS 4   /* rows of w side by side: as many sums that do not wait for each other */
#define CHUNK   512 /* of k: OUTPUTS rows of it, widened, stay in the first-level cache */

typedef struct few {
    const dt_cpu_product *product;
    const float *x; /* (m,k), wide */
    const void *w, *bias;
    void *y;
} few;

/* n values from `start` on, wide. */
static inline const float *wide(const void *data, dt_dtype type, int64_t start, int64_t n,
                                float *scratch)
{
    if (type == DT_F32)
        return (const float *)data + start;
    dt_row_widen(scratch, (const uint16_t *)data + start, type, n);
    return scratch;
}

/* Of two rows of x. Which one of them a row is, and what the other is, changes nothing in its sums. */
static inline void add_products(float *first, float *second, const float *x0, const float *x1,
                                const float *const *w, int64_t n)
{
    const float *w0 = w[0], *w1 = w[1], *w2 = w[2], *w3 = w[3];
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;

#pragma omp simd reduction(+ : s0, s1, s2, s3, t0, t1, t2, t3)
    for (int64_t i = 0; i < n; i++) {
        s0 += x0[i] * w0[i];
        s1 += x0[i] * w1[i];
        s2 += x0[i] * w2[i];
        s3 += x0[i] * w3[i];
        t0 += x1[i] * w0[i];
        t1 += x1[i] * w1[i];
        t2 += x1[i] * w2[i];
        t3 += x1[i] * w3[i];
    }
    first[0] += s0;
    first[1] += s1;
    first[2] += s2;
    first[3] += s3;
    second[0] += t0;
    second[1] += t1;
    second[2] += t2;
    second[3] += t3;
}

/* Columns j .. j + count of every row of y. Where there are fewer than OUTPUTS the last stands for the rest. */
static void columns(const few *f, int64_t j, int64_t count, float *scratch)
{
    const dt_cpu_product *p = f->product;
    float sums[DT_CPU_FEW_ROWS + 1][OUTPUTS] = {{0}}, bias[OUTPUTS] = {0};
    dt_tensor y = dt_tensor_1d(f->y, p->c_type, p->m * p->n);
    const float *w[OUTPUTS];

    for (int64_t at = 0; at < p->k; at += CHUNK) {
        int64_t n = dt_cpu_min(CHUNK, p->k - at);

        for (int64_t o = 0; o < OUTPUTS; o++)
            w[o] = o < count ? wide(f->w, p->type, (j + o) * p->k + at, n, scratch + o * CHUNK)
                             : w[count - 1];
        for (int64_t i = 0; i < p->m; i += 2) {
            const float *x = f->x + i * p->k + at;

            add_products(sums[i], sums[i + 1], x, i + 1 < p->m ? x + p->k : x, w, n);
        }
    }
    if (p->bias)
        memcpy(bias, wide(f->bias, p->type, j, count, scratch), (size_t)count * sizeof(bias[0]));
    for (int64_t i = 0; i < p->m; i++) {
        float *out = dt_row_open(&y, i * p->n + j, scratch);

        for (int64_t o = 0; o < count; o++)
            out[o] = sums[i][o] + bias[o];
        dt_row_close(&y, i * p->n + j, count, out);
    }
}

dt_status DT_CPU_NAME(matmul_few)(dt_device *device, const dt_cpu_product *product, void *y,
                                  const void *x, const void *w, const void *bias, dt_error *err)
{
    int64_t m = product->m, n = product->n, k = product->k, each = OUTPUTS * CHUNK;
    few f = {.product = product, .w = w, .bias = bias, .y = y};
    dt_cpu_scratch scratch;
    dt_status st = DT_OK;

    DT_ASSERT(m <= DT_CPU_FEW_ROWS && product->b_transposed && !product->accumulate);
    /* a piece of each thread, and x in one behind the last of them */
    DT_TRY(dt_cpu_scratch_take(&scratch, device, each + m * k / device->threads + 16, err));
    f.x = wide(x, product->type, 0, m * k, scratch.base + each * device->threads);
#pragma omp parallel num_threads(dt_cpu_threads(device, n *k))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, OUTPUTS);
        float *mine = scratch.base + each * omp_get_thread_num();

        for (int64_t j = share.begin; j < share.end; j += OUTPUTS)
            columns(&f, j, dt_cpu_min(OUTPUTS, share.end - j), mine);
    }
out:
    return st;
}
