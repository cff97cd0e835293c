/* rotary: rotates pairs of a head's elements by an angle that depends on the position, and norms of heads; with a weight,
 * each head is normalised before it is rotated (Su et al. 2021, https://arxiv.org/abs/2104.09864; norms of q and k:
 * Henry et al. 2020, https://arxiv.org/abs/2010.04245).
 *
 * Formula    ops.h. Backward rotates in the opposite direction, dy to g. With h = x rstd and w the shifted weight:
 *            dx = rstd (g w - h mean(g w h))    dw += sum of g h
 * Sums       over a head in vector order; dw: each thread sums its rows, then the threads' sums are
 *            added in order
 */
#include <math.h>

#include "engine/ops/cpu/ops_int.h"

#define WORK 3 /* cost of an element, relative to one addition */

/* The position in x of the heads of one row, which are contiguous. */
typedef struct rows {
    dt_tensor x;
    int64_t t, row, sequence; /* as in dt_heads (engine/ops/ops.h) */
} rows;

static rows rows_of(const dt_heads *h)
{
    return (rows){{.data = h->data, .dtype = h->dtype}, h->rows, h->row_stride, h->sequence_stride};
}

static int64_t start_of(const rows *r, int64_t i)
{
    return i / r->t * r->sequence + i % r->t * r->row;
}

static bool alike(const dt_heads *a, const dt_heads *b)
{
    return a->batch == b->batch && a->rows == b->rows && a->heads == b->heads &&
           a->width == b->width && a->dtype == b->dtype;
}

static bool given(const dt_tensor *x)
{
    return x != NULL && x->data != NULL;
}

static void check_angles(const dt_heads *x, const dt_tensor *angles)
{
    DT_ASSERT(dt_tensor_cols(angles) % 2 == 0 && angles->dtype == DT_F32 &&
              dt_tensor_cols(angles) <= x->width && dt_tensor_rows(angles) >= x->rows);
}

/* Rotates the first 2 half of d elements of z into y, which may be z. sign: 1, or -1 for the opposite direction. */
static void turn(float *y, const float *z, const float *angles, float sign, int64_t half, int64_t d)
{
    const float *cosines = angles, *sines = angles + half;

#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
        float first = z[i], second = z[half + i], s = sign * sines[i];

        y[i] = first * cosines[i] - second * s;
        y[half + i] = second * cosines[i] + first * s;
    }
    for (int64_t i = 2 * half; i < d && y != z; i++)
        y[i] = z[i];
}

/* Normalises a head; returns rstd. */
static float norm(float *z, const float *x, const float *w, int64_t d, float eps)
{
    float squares = 0.0f, rstd;

#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < d; j++)
        squares += x[j] * x[j];
    rstd = 1.0f / sqrtf(squares / (float)d + eps);
#pragma omp simd
    for (int64_t j = 0; j < d; j++)
        z[j] = x[j] * rstd * w[j];
    return rstd;
}

dt_status DT_CPU_NAME(rotary_forward)(dt_device *device, const dt_heads *y, dt_tensor *rstd,
                                      const dt_heads *x, const dt_tensor *w, double shift,
                                      const dt_tensor *angles, double eps, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = x->batch * x->rows, heads = x->heads, d = x->width, width = heads * d;
    int64_t pad = dt_cpu_round_up(width, 16), turned = dt_tensor_cols(angles);
    rows from = rows_of(x), to = rows_of(y);
    bool normed = given(w);
    dt_cpu_scratch scratch;

    check_angles(x, angles);
    DT_ASSERT(alike(x, y) && normed == given(rstd) &&
              (!normed || (dt_tensor_elems(w) == d && dt_tensor_elems(rstd) == n * heads)));
    DT_TRY(dt_row_check(&from.x, "rotary", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 4 * pad, err));
#pragma omp parallel num_threads(dt_cpu_threads_rows(device, n, n *width *WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);
        const float *scale = normed ? dt_row_shifted(w, d, shift, mine + 3 * pad) : NULL;

        for (int64_t i = share.begin; i < share.end; i++) {
            const float *in = dt_row_read(&from.x, start_of(&from, i), width, mine);
            float *out = dt_row_open(&to.x, start_of(&to, i), mine + pad);
            const float *angle = (const float *)angles->data + i % x->rows * turned;

            for (int64_t h = 0; h < heads; h++) {
                const float *z = in + h * d;

                if (normed) {
                    ((float *)rstd->data)[i * heads + h] =
                        norm(mine + 2 * pad, z, scale, d, (float)eps);
                    z = mine + 2 * pad;
                }
                turn(out + h * d, z, angle, 1.0f, turned / 2, d);
            }
            dt_row_close(&to.x, start_of(&to, i), width, out);
        }
    }
out:
    return st;
}

/* Computes the gradient through the norm into dx, which may be g; adds to dw. */
static void norm_backward(float *dx, float *restrict dw, const float *g, const float *x,
                          const float *w, float rstd, int64_t d)
{
    float sum = 0.0f, mean;

#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < d; j++) {
        float h = x[j] * rstd;

        sum += g[j] * w[j] * h;
        dw[j] += g[j] * h;
    }
    mean = sum / (float)d;
#pragma omp simd
    for (int64_t j = 0; j < d; j++)
        dx[j] = rstd * (g[j] * w[j] - x[j] * rstd * mean);
}

dt_status DT_CPU_NAME(rotary_backward)(dt_device *device, const dt_heads *dx, dt_tensor *dw,
                                       const dt_heads *dy, const dt_heads *x, const dt_tensor *rstd,
                                       const dt_tensor *w, double shift, const dt_tensor *angles,
                                       dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dy->batch * dy->rows, heads = dy->heads, d = dy->width, width = heads * d;
    int64_t pad = dt_cpu_round_up(width, 16), turned_cols = dt_tensor_cols(angles);
    bool normed = given(w);
    rows from = rows_of(dy), to = rows_of(dx), kept = rows_of(normed ? x : dy);
    int team = 1; /* OpenMP may start fewer threads than requested */
    dt_cpu_scratch scratch;

    check_angles(dy, angles);
    DT_ASSERT(alike(dx, dy) && normed == given(rstd) && (!normed || alike(x, dy)) &&
              (!given(dw) || (normed && dw->dtype == DT_F32 && dt_tensor_elems(dw) == d)));
    DT_TRY(dt_row_check(&from.x, "rotary", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 6 * pad, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *width *WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch), *turned = mine + pad;
        const float *scale = normed ? dt_row_shifted(w, d, shift, mine + 2 * pad) : NULL;

        if (omp_get_thread_num() == 0)
            team = omp_get_num_threads();
        memset(mine, 0, (size_t)d * sizeof *mine);
        for (int64_t i = share.begin; i < share.end; i++) {
            const float *in = dt_row_read(&from.x, start_of(&from, i), width, mine + 3 * pad);
            const float *was =
                normed ? dt_row_read(&kept.x, start_of(&kept, i), width, mine + 4 * pad) : NULL;
            float *out = dt_row_open(&to.x, start_of(&to, i), mine + 5 * pad);
            const float *angle = (const float *)angles->data + i % dy->rows * turned_cols;

            for (int64_t h = 0; h < heads; h++) {
                turn(normed ? turned : out + h * d, in + h * d, angle, -1.0f, turned_cols / 2, d);
                if (normed)
                    norm_backward(out + h * d, mine, turned, was + h * d, scale,
                                  ((const float *)rstd->data)[i * heads + h], d);
            }
            dt_row_close(&to.x, start_of(&to, i), width, out);
        }
    }
    for (int t = 0; given(dw) && t < team; t++) {
        const float *part = scratch.base + (size_t)t * scratch.stride;

        for (int64_t j = 0; j < d; j++)
            ((float *)dw->data)[j] += part[j];
    }
out:
    return st;
}

/* heads_norm: an rmsnorm over all heads of a row, whose sums the caller adds up over ranks. */

#define HEADS_WORK 3 /* cost of an element, relative to one addition */

dt_status DT_CPU_NAME(heads_sum)(dt_device *device, dt_tensor *sums, const dt_heads *a,
                                 const dt_heads *b, const dt_tensor *w, double shift, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = a->batch * a->rows, width = a->heads * a->width, pad = dt_cpu_round_up(width, 16);
    rows left = rows_of(a), right = rows_of(b);
    bool weighed = given(w);
    dt_cpu_scratch scratch;

    DT_ASSERT(alike(a, b) && sums->dtype == DT_F32 && dt_tensor_elems(sums) == n &&
              (!weighed || dt_tensor_elems(w) == width));
    DT_TRY(dt_row_check(&left.x, "norm of heads", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * pad, err));
#pragma omp parallel num_threads(dt_cpu_threads_rows(device, n, n *width *HEADS_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);
        const float *scale = weighed ? dt_row_shifted(w, width, shift, mine + 2 * pad) : NULL;

        for (int64_t i = share.begin; i < share.end; i++) {
            const float *x = dt_row_read(&left.x, start_of(&left, i), width, mine);
            const float *y = dt_row_read(&right.x, start_of(&right, i), width, mine + pad);
            float sum = 0.0f;

#pragma omp simd reduction(+ : sum)
            for (int64_t j = 0; j < width; j++)
                sum += x[j] * y[j] * (weighed ? scale[j] : 1.0f);
            ((float *)sums->data)[i] = sum;
        }
    }
out:
    return st;
}

static float rstd_of(const dt_tensor *sums, int64_t i, int64_t width, double eps)
{
    return 1.0f / sqrtf(((const float *)sums->data)[i] / (float)width + (float)eps);
}

dt_status DT_CPU_NAME(heads_norm_forward)(dt_device *device, const dt_heads *y, const dt_heads *x,
                                          const dt_tensor *sums, const dt_tensor *w, double shift,
                                          int64_t width, double eps, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = x->batch * x->rows, own = x->heads * x->width, pad = dt_cpu_round_up(own, 16);
    rows from = rows_of(x), to = rows_of(y);
    dt_cpu_scratch scratch;

    DT_ASSERT(alike(x, y) && dt_tensor_elems(sums) == n && dt_tensor_elems(w) == own);
    DT_TRY(dt_row_check(&from.x, "norm of heads", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * pad, err));
#pragma omp parallel num_threads(dt_cpu_threads_rows(device, n, n *own *HEADS_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);
        const float *scale = dt_row_shifted(w, own, shift, mine + 2 * pad);

        for (int64_t i = share.begin; i < share.end; i++) {
            const float *in = dt_row_read(&from.x, start_of(&from, i), own, mine);
            float *out = dt_row_open(&to.x, start_of(&to, i), mine + pad);
            float rstd = rstd_of(sums, i, width, eps);

#pragma omp simd
            for (int64_t j = 0; j < own; j++)
                out[j] = in[j] * rstd * scale[j];
            dt_row_close(&to.x, start_of(&to, i), own, out);
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(heads_norm_backward)(dt_device *device, const dt_heads *dx, dt_tensor *dw,
                                           const dt_heads *dy, const dt_heads *x,
                                           const dt_tensor *sums, const dt_tensor *products,
                                           const dt_tensor *w, double shift, int64_t width,
                                           double eps, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = x->batch * x->rows, own = x->heads * x->width, pad = dt_cpu_round_up(own, 16);
    rows from = rows_of(dy), to = rows_of(dx), kept = rows_of(x);
    int team = 1; /* OpenMP may start fewer threads than requested */
    dt_cpu_scratch scratch;

    DT_ASSERT(alike(x, dx) && alike(x, dy) && dt_tensor_elems(sums) == n &&
              dt_tensor_elems(products) == n && dt_tensor_elems(w) == own &&
              (!given(dw) || (dw->dtype == DT_F32 && dt_tensor_elems(dw) == own)));
    DT_TRY(dt_row_check(&from.x, "norm of heads", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 5 * pad, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *own *HEADS_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);
        const float *scale = dt_row_shifted(w, own, shift, mine + pad);

        if (omp_get_thread_num() == 0)
            team = omp_get_num_threads();
        memset(mine, 0, (size_t)own * sizeof *mine);
        for (int64_t i = share.begin; i < share.end; i++) {
            const float *g = dt_row_read(&from.x, start_of(&from, i), own, mine + 2 * pad);
            const float *in = dt_row_read(&kept.x, start_of(&kept, i), own, mine + 3 * pad);
            float *out = dt_row_open(&to.x, start_of(&to, i), mine + 4 * pad);
            float rstd = rstd_of(sums, i, width, eps);
            float mean = ((const float *)products->data)[i] / (float)width * rstd * rstd;

#pragma omp simd
            for (int64_t j = 0; j < own; j++) {
                mine[j] += g[j] * in[j] * rstd;
                out[j] = rstd * (g[j] * scale[j] - in[j] * mean);
            }
            dt_row_close(&to.x, start_of(&to, i), own, out);
        }
    }
    for (int t = 0; given(dw) && t < team; t++) {
        const float *part = scratch.base + (size_t)t * scratch.stride;

        for (int64_t j = 0; j < own; j++)
            ((float *)dw->data)[j] += part[j];
    }
out:
    return st;
}
