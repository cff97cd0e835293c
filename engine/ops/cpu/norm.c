/* norm: layernorm and rmsnorm of rows. */
#include <math.h>

#include "engine/ops/cpu/ops_int.h"

/* layernorm: normalises each row, scales and shifts it (Ba et al. 2016, https://arxiv.org/abs/1607.06450).
 *
 * Formula    y = (x - mean) rstd w + b
 *            with h = (x - mean) rstd and g = dy w:
 *            dx += rstd (g - mean(g) - h mean(g h))     dw += sum of dy h     db += sum of dy
 * Sums       over a row in vector order; dw and db: each thread sums its rows, then the threads' sums
 *            are added in order
 */

#define LAYERNORM_WORK 4 /* cost of an element, relative to one addition */

static void layernorm_row(float *y, float *mean_out, float *rstd_out, const float *x,
                          const float *w, const float *b, int64_t c, float eps)
{
    float sum = 0.0f, squares = 0.0f, mean, rstd;

#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < c; j++)
        sum += x[j];
    mean = sum / (float)c;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < c; j++)
        squares += (x[j] - mean) * (x[j] - mean);
    rstd = 1.0f / sqrtf(squares / (float)c + eps);
#pragma omp simd
    for (int64_t j = 0; j < c; j++)
        y[j] = (x[j] - mean) * rstd * w[j] + b[j];
    *mean_out = mean;
    *rstd_out = rstd;
}

dt_status DT_CPU_NAME(layernorm_forward)(dt_device *device, dt_tensor *y, dt_tensor *mean,
                                         dt_tensor *rstd, const dt_tensor *x, const dt_tensor *w,
                                         const dt_tensor *b, double eps, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(x), c = dt_tensor_cols(x), pad = dt_cpu_round_up(c, 16);
    dt_cpu_scratch scratch;

    DT_ASSERT(mean->dtype == DT_F32 && rstd->dtype == DT_F32 && dt_tensor_elems(w) == c &&
              dt_tensor_elems(b) == c && dt_tensor_elems(mean) == n && dt_tensor_elems(rstd) == n);
    DT_TRY(dt_row_check(x, "layernorm", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 4 * pad, err));
#pragma omp parallel num_threads(dt_cpu_threads_rows(device, n, n *c *LAYERNORM_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);
        const float *scale = dt_row_read(w, 0, c, mine + 2 * pad);
        const float *shift = dt_row_read(b, 0, c, mine + 3 * pad);

        for (int64_t i = share.begin; i < share.end; i++) {
            float *row = dt_row_open(y, i * c, mine + pad);

            layernorm_row(row, (float *)mean->data + i, (float *)rstd->data + i,
                          dt_row_read(x, i * c, c, mine), scale, shift, c, (float)eps);
            dt_row_close(y, i * c, c, row);
        }
    }
out:
    return st;
}

/* dx_out = dx + the gradient of the row; adds to dw and db. dx_out may be dx. */
static void layernorm_backward_row(float *dx_out, const float *dx, float *restrict dw,
                                   float *restrict db, const float *dy, const float *x,
                                   const float *w, float mean, float rstd, int64_t c)
{
    float sum_g = 0.0f, sum_gh = 0.0f, mean_g, mean_gh;

#pragma omp simd reduction(+ : sum_g, sum_gh)
    for (int64_t j = 0; j < c; j++) {
        float h = (x[j] - mean) * rstd, g = dy[j] * w[j];

        sum_g += g;
        sum_gh += g * h;
        dw[j] += dy[j] * h;
        db[j] += dy[j];
    }
    mean_g = sum_g / (float)c;
    mean_gh = sum_gh / (float)c;
#pragma omp simd
    for (int64_t j = 0; j < c; j++) {
        float h = (x[j] - mean) * rstd, g = dy[j] * w[j];
        dx_out[j] = dx[j] + rstd * (g - mean_g - h * mean_gh);
    }
}

dt_status DT_CPU_NAME(layernorm_backward)(dt_device *device, dt_tensor *dx, dt_tensor *dw,
                                          dt_tensor *db, const dt_tensor *dy, const dt_tensor *x,
                                          const dt_tensor *mean, const dt_tensor *rstd,
                                          const dt_tensor *w, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(x), c = dt_tensor_cols(x), pad = dt_cpu_round_up(c, 16);
    int team = 1; /* OpenMP may start fewer threads than requested */
    dt_cpu_scratch scratch;

    DT_ASSERT(!dw->data || (dw->dtype == DT_F32 && dt_tensor_elems(dw) == c));
    DT_ASSERT(!db->data || (db->dtype == DT_F32 && dt_tensor_elems(db) == c));
    DT_TRY(dt_row_check(x, "layernorm", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 7 * pad, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *c *LAYERNORM_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);
        const float *scale = dt_row_read(w, 0, c, mine + 5 * pad);

        if (omp_get_thread_num() == 0)
            team = omp_get_num_threads();
        memset(mine, 0, (size_t)(2 * pad) * sizeof *mine);
        for (int64_t i = share.begin; i < share.end; i++) {
            float *row = dt_row_open(dx, i * c, mine + 2 * pad);

            layernorm_backward_row(
                row, dt_row_read(dx, i * c, c, mine + 6 * pad), mine, mine + pad,
                dt_row_read(dy, i * c, c, mine + 3 * pad), dt_row_read(x, i * c, c, mine + 4 * pad),
                scale, ((const float *)mean->data)[i], ((const float *)rstd->data)[i], c);
            dt_row_close(dx, i * c, c, row);
        }
    }
    for (int t = 0; t < team; t++) {
        const float *part = scratch.base + (size_t)t * scratch.stride;

        for (int64_t j = 0; dw->data && j < c; j++)
            ((float *)dw->data)[j] += part[j];
        for (int64_t j = 0; db->data && j < c; j++)
            ((float *)db->data)[j] += part[pad + j];
    }
out:
    return st;
}

/* rmsnorm: divides each row by the root of its mean square and scales it (Zhang and Sennrich 2019,
 * https://arxiv.org/abs/1910.07467).
 *
 * Formula    y = x rstd w, w the shifted weight
 *            with h = x rstd and g = dy w:  dx += rstd (g - h mean(g h))    dw += sum of dy h
 * Sums       over a row in vector order; dw: each thread sums its rows, then the threads' sums are
 *            added in order
 */

#define RMSNORM_WORK 3 /* cost of an element, relative to one addition */

/* Returns rstd. */
static float rmsnorm_row(float *y, const float *x, const float *w, int64_t c, float eps)
{
    float squares = 0.0f, rstd;

#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < c; j++)
        squares += x[j] * x[j];
    rstd = 1.0f / sqrtf(squares / (float)c + eps);
#pragma omp simd
    for (int64_t j = 0; j < c; j++)
        y[j] = x[j] * rstd * w[j];
    return rstd;
}

dt_status DT_CPU_NAME(rmsnorm_forward)(dt_device *device, dt_tensor *y, dt_tensor *rstd,
                                       const dt_tensor *x, const dt_tensor *w, double shift,
                                       double eps, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(x), c = dt_tensor_cols(x), pad = dt_cpu_round_up(c, 16);
    dt_cpu_scratch scratch;

    DT_ASSERT(rstd->dtype == DT_F32 && dt_tensor_elems(w) == c && dt_tensor_elems(rstd) == n &&
              dt_tensor_elems(y) == n * c);
    DT_TRY(dt_row_check(x, "rmsnorm", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * pad, err));
#pragma omp parallel num_threads(dt_cpu_threads_rows(device, n, n *c *RMSNORM_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);
        const float *scale = dt_row_shifted(w, c, shift, mine + 2 * pad);

        for (int64_t i = share.begin; i < share.end; i++) {
            float *row = dt_row_open(y, i * c, mine + pad);

            ((float *)rstd->data)[i] =
                rmsnorm_row(row, dt_row_read(x, i * c, c, mine), scale, c, (float)eps);
            dt_row_close(y, i * c, c, row);
        }
    }
out:
    return st;
}

/* dx_out = dx + the gradient of the row; adds to dw. dx_out may be dx. */
static void rmsnorm_backward_row(float *dx_out, const float *dx, float *restrict dw,
                                 const float *dy, const float *x, const float *w, float rstd,
                                 int64_t c)
{
    float sum = 0.0f, mean;

#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < c; j++) {
        float h = x[j] * rstd;

        sum += dy[j] * w[j] * h;
        dw[j] += dy[j] * h;
    }
    mean = sum / (float)c;
#pragma omp simd
    for (int64_t j = 0; j < c; j++)
        dx_out[j] = dx[j] + rstd * (dy[j] * w[j] - x[j] * rstd * mean);
}

dt_status DT_CPU_NAME(rmsnorm_backward)(dt_device *device, dt_tensor *dx, dt_tensor *dw,
                                        const dt_tensor *dy, const dt_tensor *x,
                                        const dt_tensor *rstd, const dt_tensor *w, double shift,
                                        dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(x), c = dt_tensor_cols(x), pad = dt_cpu_round_up(c, 16);
    int team = 1; /* OpenMP may start fewer threads than requested */
    dt_cpu_scratch scratch;

    DT_ASSERT(!dw->data || (dw->dtype == DT_F32 && dt_tensor_elems(dw) == c));
    DT_ASSERT(dt_tensor_elems(w) == c && dt_tensor_elems(dx) == n * c &&
              dt_tensor_elems(dy) == n * c);
    DT_TRY(dt_row_check(x, "rmsnorm", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 6 * pad, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *c *RMSNORM_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);
        const float *scale = dt_row_shifted(w, c, shift, mine + pad);

        if (omp_get_thread_num() == 0)
            team = omp_get_num_threads();
        memset(mine, 0, (size_t)pad * sizeof *mine);
        for (int64_t i = share.begin; i < share.end; i++) {
            float *row = dt_row_open(dx, i * c, mine + 2 * pad);

            rmsnorm_backward_row(row, dt_row_read(dx, i * c, c, mine + 3 * pad), mine,
                                 dt_row_read(dy, i * c, c, mine + 4 * pad),
                                 dt_row_read(x, i * c, c, mine + 5 * pad), scale,
                                 ((const float *)rstd->data)[i], c);
            dt_row_close(dx, i * c, c, row);
        }
    }
    for (int t = 0; t < team; t++) {
        const float *part = scratch.base + (size_t)t * scratch.stride;

        for (int64_t j = 0; dw->data && j < c; j++)
            ((float *)dw->data)[j] += part[j];
    }
out:
    return st;
}
