/* elementwise: ops that compute each element by itself: residual, blend, cast, zero, dropout. */
#include "engine/ops/cpu/ops_int.h"

/* --- the loop of residual and blend. Factors of exactly 1 give the same bits as no multiplication */

/* y = of_left*left + of_right*right; y may be left or right. */
static inline dt_status dt_add_shares(dt_device *device, dt_tensor *y, const dt_tensor *left,
                                      float of_left, const dt_tensor *right, float of_right,
                                      const char *op, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(left);
    dt_cpu_scratch scratch;

    DT_TRY(dt_row_check(left, op, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            const float *l = dt_row_read(left, i, n, mine);
            const float *r = dt_row_read(right, i, n, mine + DT_ROW_CHUNK);
            float *out = dt_row_open(y, i, mine + 2 * DT_ROW_CHUNK);

#pragma omp simd
            for (int64_t k = 0; k < n; k++)
                out[k] = of_left * l[k] + of_right * r[k];
            dt_row_close(y, i, n, out);
        }
    }
out:
    return st;
}

/* residual: computes y = a + b. */

dt_status DT_CPU_NAME(residual_forward)(dt_device *device, dt_tensor *y, const dt_tensor *a,
                                        const dt_tensor *b, dt_error *err)
{
    return dt_add_shares(device, y, a, 1, b, 1, "residual", err);
}

/* blend: computes y = a*x + b*y. */

dt_status DT_CPU_NAME(blend)(dt_device *device, dt_tensor *y, const dt_tensor *x, double a,
                             double b, dt_error *err)
{
    return dt_add_shares(device, y, x, (float)a, y, (float)b, "blend", err);
}

/* cast: out := x in out's type; zero: x := 0. */

dt_status DT_CPU_NAME(cast)(dt_device *device, dt_tensor *out, const dt_tensor *x, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    size_t elem_bytes = dt_dtype_bytes(x->dtype);
    bool same = out->dtype == x->dtype;
    dt_cpu_scratch scratch;

    DT_ASSERT(dt_tensor_elems(out) == elems);
    if (same && out->data == x->data)
        goto out;
    if (!same) {
        DT_TRY(dt_row_check(x, "cast", err));
        DT_TRY(dt_row_check(out, "cast", err));
    }
    DT_TRY(dt_cpu_scratch_take(&scratch, device, DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        if (same)
            memcpy((char *)out->data + (size_t)share.begin * elem_bytes,
                   (const char *)x->data + (size_t)share.begin * elem_bytes,
                   (size_t)(share.end - share.begin) * elem_bytes);
        for (int64_t i = share.begin; i < share.end && !same; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);

            /* no copy in between: widening writes into out, narrowing reads x in place; only a cast
             * between two 16-bit types uses the scratch */
            dt_row_close(out, i, n, dt_row_read(x, i, n, dt_row_open(out, i, mine)));
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(zero)(dt_device *device, dt_tensor *x, dt_error *err)
{
    int64_t elems = dt_tensor_elems(x);
    size_t elem_bytes = dt_dtype_bytes(x->dtype);

#pragma omp parallel num_threads(dt_cpu_threads(device, elems / 4))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);

        memset((char *)x->data + (size_t)share.begin * elem_bytes, 0,
               (size_t)(share.end - share.begin) * elem_bytes);
    }
    return DT_OK;
}

/* dropout: keeps an element with probability 1-p and scales it by 1/(1-p).
 *
 * Forward and backward are the same function with the same key (ops_int.h): no mask is stored
 * between them.
 */

#define WORK 8 /* cost of an element, relative to one addition */

static dt_status drop(dt_device *device, dt_tensor *y, const dt_tensor *x, double p,
                      const dt_philox_key *key, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    dt_dropout dropout = dt_dropout_of(p, key);
    dt_cpu_scratch scratch;

    DT_TRY(dt_row_check(x, "dropout", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 2 * DT_ROW_CHUNK + dt_dropout_floats(DT_ROW_CHUNK),
                               err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems *WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            const float *in = dt_row_read(x, i, n, mine);
            float *out = dt_row_open(y, i, mine + DT_ROW_CHUNK);
            const float *uniforms = dt_dropout_draw(&dropout, i, n, mine + 2 * DT_ROW_CHUNK);

#pragma omp simd
            for (int64_t l = 0; l < n; l++)
                out[l] = uniforms[l] >= dropout.threshold ? in[l] * dropout.scale : 0.0f;
            dt_row_close(y, i, n, out);
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(dropout_forward)(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                       double p, const dt_philox_key *key, dt_error *err)
{
    return p > 0.0 ? drop(device, y, x, p, key, err) : DT_CPU_NAME(cast)(device, y, x, err);
}

dt_status DT_CPU_NAME(dropout_backward)(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                        double p, const dt_philox_key *key, dt_error *err)
{
    return DT_CPU_NAME(dropout_forward)(device, dx, dy, p, key, err);
}
