/* rmsnorm: computes forward, and backward, which adds to the residual stream's gradient (ops.h).
 *
 * Forward   one warp per row, in vectors of 16 bytes if rows are aligned to them; the row is read twice, the
 *           second time from the L1 cache
 * Backward  the same for dx; dw by one thread per column over stripes of rows, whose sums are added in order
 *           (columns.cuh)
 * Bytes     for C bf16 elements: forward 4 C per row, backward 12 C (dy and x are read for dx and for dw)
 */
#include "engine/ops/cuda/columns.cuh"

#define WARPS 8 /* warps per block */

/* Calls f(j) for the columns j of this lane: whole vectors, or single elements. */
template <typename T, typename F> __device__ inline void over_columns(int64_t c, bool aligned, F f)
{
    int lane = (int)threadIdx.x % 32;

    if (aligned) {
        for (int64_t j = lane * dt_vec<T>::N; j < c; j += 32 * dt_vec<T>::N)
            f(j, dt_vec<T>::N);
    } else {
        for (int64_t j = lane; j < c; j += 32)
            f(j, 1);
    }
}

template <typename T> __device__ inline dt_vec<T> load_at(const T *x, int64_t j, int n)
{
    dt_vec<T> out;

    if (n == dt_vec<T>::N)
        return *(const dt_vec<T> *)(x + j);
    out.v[0] = x[j];
    return out;
}

template <typename T> __device__ inline void store_at(T *x, int64_t j, int n, const dt_vec<T> &in)
{
    if (n == dt_vec<T>::N)
        *(dt_vec<T> *)(x + j) = in;
    else
        x[j] = in.v[0];
}

template <typename T>
__global__ void rms_forward(T *y, float *rstd, const T *x, const T *w, float shift, int64_t n,
                            int64_t c, float eps, bool aligned)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    float squares = 0.0f, r;

    if (row >= n)
        return;
    x += row * c;
    y += row * c;
    over_columns<T>(c, aligned, [&](int64_t j, int count) {
        dt_vec<T> in = load_at(x, j, count);

        for (int k = 0; k < count; k++)
            squares += dt_to_float(in.v[k]) * dt_to_float(in.v[k]);
    });
    r = rsqrtf(dt_warp_sum(squares) / (float)c + eps);
    over_columns<T>(c, aligned, [&](int64_t j, int count) {
        dt_vec<T> in = load_at(x, j, count), scale = load_at(w, j, count), out;

        for (int k = 0; k < count; k++)
            out.v[k] =
                dt_from_float<T>(dt_to_float(in.v[k]) * r * (shift + dt_to_float(scale.v[k])));
        store_at(y, j, count, out);
    });
    if (threadIdx.x % 32 == 0)
        rstd[row] = r;
}

dt_status dt_cuda_rmsnorm_forward(dt_device *device, dt_tensor *y, dt_tensor *rstd,
                                  const dt_tensor *x, const dt_tensor *w, double shift, double eps,
                                  dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = dt_tensor_rows(x), c = dt_tensor_cols(x);

    DT_ASSERT(dt_tensor_elems(y) == n * c && dt_tensor_elems(w) == c && rstd->dtype == DT_F32 &&
              dt_tensor_elems(rstd) == n);
    if (n == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(x->dtype, "rmsnorm", err, {
        bool aligned = dt_cuda_aligned<T>(x->data, c) && dt_cuda_aligned<T>(y->data, c) &&
                       dt_cuda_aligned<T>(w->data, c);

        DT_CUDA_LAUNCH((rms_forward<T>), (unsigned)dt_cuda_ceil(n, WARPS), WARPS * 32, 0,
                       state->stream, (T *)y->data, (float *)rstd->data, (const T *)x->data,
                       (const T *)w->data, (float)shift, n, c, (float)eps, aligned);
    });
    return dt_cuda_launched("rmsnorm", err);
}

/* --- backward */

/* dx += rstd * (g - xhat * mean(g * xhat)) with g = dy * w. */
template <typename T>
__global__ void rms_backward_input(T *dx, const T *dy, const T *x, const float *rstd, const T *w,
                                   float shift, int64_t n, int64_t c, bool aligned)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    float sum = 0.0f, r;

    if (row >= n)
        return;
    dx += row * c;
    dy += row * c;
    x += row * c;
    r = rstd[row];
    over_columns<T>(c, aligned, [&](int64_t j, int count) {
        dt_vec<T> dyv = load_at(dy, j, count), xv = load_at(x, j, count), wv = load_at(w, j, count);

        for (int k = 0; k < count; k++)
            sum +=
                dt_to_float(dyv.v[k]) * (shift + dt_to_float(wv.v[k])) * dt_to_float(xv.v[k]) * r;
    });
    sum = dt_warp_sum(sum) / (float)c;
    over_columns<T>(c, aligned, [&](int64_t j, int count) {
        dt_vec<T> dyv = load_at(dy, j, count), xv = load_at(x, j, count), wv = load_at(w, j, count);
        dt_vec<T> out = load_at((const T *)dx, j, count);

        for (int k = 0; k < count; k++)
            out.v[k] =
                dt_from_float<T>(dt_to_float(out.v[k]) +
                                 r * (dt_to_float(dyv.v[k]) * (shift + dt_to_float(wv.v[k])) -
                                      dt_to_float(xv.v[k]) * r * sum));
        store_at(dx, j, count, out);
    });
}

/* Computes parts (stripes, C) of dw: one thread per column, blockIdx.y is a stripe of rows. */
template <typename T>
__global__ void rms_backward_columns(float *parts, const T *dy, const T *x, const float *rstd,
                                     int64_t n, int64_t c)
{
    int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t begin = n * blockIdx.y / gridDim.y, end = n * (blockIdx.y + 1) / gridDim.y;
    float dw = 0.0f;

    if (column >= c)
        return;
#pragma unroll 4
    for (int64_t row = begin; row < end; row++)
        dw += dt_to_float(dy[row * c + column]) * dt_to_float(x[row * c + column]) * rstd[row];
    parts[(int64_t)blockIdx.y * c + column] = dw;
}

dt_status dt_cuda_rmsnorm_backward(dt_device *device, dt_tensor *dx, dt_tensor *dw,
                                   const dt_tensor *dy, const dt_tensor *x, const dt_tensor *rstd,
                                   const dt_tensor *w, double shift, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = dt_tensor_rows(x), c = dt_tensor_cols(x);
    unsigned column_blocks = (unsigned)dt_cuda_ceil(c, DT_CUDA_BLOCK);
    int64_t most = dt_cuda_ceil((int64_t)state->processors * 8, column_blocks);
    unsigned stripes = (unsigned)(most < dt_cuda_ceil(n, 8) ? most : dt_cuda_ceil(n, 8));
    const float *r = (const float *)rstd->data;
    dt_status st = DT_OK;
    void *scratch;

    DT_ASSERT((dw->data == NULL || (dw->dtype == DT_F32 && dt_tensor_elems(dw) == c)) &&
              dt_tensor_elems(dy) == n * c && dt_tensor_elems(dx) == n * c);
    if (n == 0)
        return DT_OK;
    DT_TRY(dt_cuda_scratch(&scratch, device, stripes * (size_t)c * sizeof(float), err));
    DT_CUDA_DISPATCH(x->dtype, "rmsnorm", err, {
        bool aligned = dt_cuda_aligned<T>(x->data, c) && dt_cuda_aligned<T>(dy->data, c) &&
                       dt_cuda_aligned<T>(w->data, c) && dt_cuda_aligned<T>(dx->data, c);

        if (dw->data != NULL)
            DT_CUDA_LAUNCH((rms_backward_columns<T>), dim3(column_blocks, stripes), DT_CUDA_BLOCK,
                           0, state->stream, (float *)scratch, (const T *)dy->data,
                           (const T *)x->data, r, n, c);
        DT_CUDA_LAUNCH((rms_backward_input<T>), (unsigned)dt_cuda_ceil(n, WARPS), WARPS * 32, 0,
                       state->stream, (T *)dx->data, (const T *)dy->data, (const T *)x->data, r,
                       (const T *)w->data, (float)shift, n, c, aligned);
    });
    DT_TRY(dt_cuda_launched("rmsnorm", err));
    DT_TRY(dt_columns_add(state, {{(float *)dw->data}}, (const float *)scratch, stripes, c, c,
                          "rmsnorm", err));
out:
    return st;
}
