/* rotary: rotates the heads of a row, one warp per head; each lane has pairs of elements, 32 apart.
 *
 * dw        blocks of the backward kernel process fixed heads, keep their sums in registers and add them in
 *           the order of their warps; the blocks' sums are added in order (columns.cuh)
 * Errors    DT_ERR_UNSUPPORTED for heads wider than D_MAX with a norm
 */
#include "engine/ops/cuda/columns.cuh"

#define WARPS 8 /* warps per block */
#define D_MAX 256
#define PAIRS (D_MAX / 64) /* per lane, at most */

/* Like dt_heads; `data` is passed to the kernel in the type of the elements. */
struct places {
    void *data;
    int64_t row, sequence;
};

struct rotary {
    places x, y; /* forward: from x to y. backward: from dy to dx; x is the input of the norm */
    places dy, dx;
    int64_t rows, heads, d, count; /* count: heads of all rows of all sequences */
    float eps;
};

static places places_of(const dt_heads *h)
{
    return {h->data, h->row_stride, h->sequence_stride};
}

/* Returns head i, counted over all rows and sequences. */
template <typename T> __device__ inline T *head_at(const rotary &r, const places &p, int64_t i)
{
    int64_t row = i / r.heads, head = i % r.heads;

    return (T *)p.data + row / r.rows * p.sequence + row % r.rows * p.row + head * r.d;
}

__device__ inline const float *angles_at(const rotary &r, const float *angles, int64_t i)
{
    return angles + i / r.heads % r.rows * r.d;
}

/* w NULL: no norm. y may be x: only the lane that writes an element reads it. */
template <typename T>
__global__ void rotary_forward(rotary r, float *rstd, const T *w, const float *angles)
{
    int lane = (int)threadIdx.x % 32, half = (int)r.d / 2;
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    float factor = 1.0f, squares = 0.0f;
    const float *angle;
    const T *x;
    T *y;

    if (i >= r.count)
        return;
    x = head_at<T>(r, r.x, i);
    y = head_at<T>(r, r.y, i);
    angle = angles_at(r, angles, i);
    if (w != NULL) {
        for (int j = lane; j < half; j += 32) {
            float first = dt_to_float(x[j]), second = dt_to_float(x[half + j]);

            squares += first * first + second * second;
        }
        factor = rsqrtf(dt_warp_sum(squares) / (float)r.d + r.eps);
        if (lane == 0)
            rstd[i] = factor;
    }
    for (int j = lane; j < half; j += 32) {
        float first = dt_to_float(x[j]), second = dt_to_float(x[half + j]);
        float c = angle[j], s = angle[half + j];

        if (w != NULL) {
            first *= factor * dt_to_float(w[j]);
            second *= factor * dt_to_float(w[half + j]);
        }
        y[j] = dt_from_float<T>(first * c - second * s);
        y[half + j] = dt_from_float<T>(second * c + first * s);
    }
}

/* Rotates elements j and half + j of dy back. */
template <typename T>
__device__ inline void turned_back(float *first, float *second, const T *dy, const float *angle,
                                   int j, int half)
{
    float a = dt_to_float(dy[j]), b = dt_to_float(dy[half + j]), c = angle[j], s = angle[half + j];

    *first = a * c + b * s;
    *second = b * c - a * s;
}

template <typename T> __global__ void rotary_backward(rotary r, const float *angles)
{
    int lane = (int)threadIdx.x % 32, half = (int)r.d / 2;
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;

    if (i >= r.count)
        return;
    for (int j = lane; j < half; j += 32) {
        T *dx = head_at<T>(r, r.dx, i);
        float first, second;

        turned_back(&first, &second, head_at<T>(r, r.dy, i), angles_at(r, angles, i), j, half);
        dx[j] = dt_from_float<T>(first);
        dx[half + j] = dt_from_float<T>(second);
    }
}

/* Rotates dy back, and computes the gradient through the norm. parts (blocks, D): the block's sums
 * for dw. */
template <typename T>
__global__ void rotary_norm_backward(rotary r, float *parts, const float *rstd, const T *w,
                                     const float *angles)
{
    __shared__ float sums[D_MAX];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, half = (int)r.d / 2;
    float dw[2 * PAIRS] = {};

    for (int64_t i = (int64_t)blockIdx.x * WARPS + warp; i < r.count;
         i += (int64_t)gridDim.x * WARPS) {
        const T *x = head_at<T>(r, r.x, i);
        T *dx = head_at<T>(r, r.dx, i);
        float g[2 * PAIRS], h[2 * PAIRS], sum = 0.0f;

#pragma unroll
        for (int k = 0; k < PAIRS; k++) {
            int j = lane + k * 32;

            if (j >= half)
                continue;
            turned_back(&g[2 * k], &g[2 * k + 1], head_at<T>(r, r.dy, i), angles_at(r, angles, i),
                        j, half);
            h[2 * k] = dt_to_float(x[j]) * rstd[i];
            h[2 * k + 1] = dt_to_float(x[half + j]) * rstd[i];
            dw[2 * k] += g[2 * k] * h[2 * k];
            dw[2 * k + 1] += g[2 * k + 1] * h[2 * k + 1];
            g[2 * k] *= dt_to_float(w[j]);
            g[2 * k + 1] *= dt_to_float(w[half + j]);
            sum += g[2 * k] * h[2 * k] + g[2 * k + 1] * h[2 * k + 1];
        }
        sum = dt_warp_sum(sum) / (float)r.d;
#pragma unroll
        for (int k = 0; k < PAIRS; k++) {
            int j = lane + k * 32;

            if (j >= half)
                continue;
            dx[j] = dt_from_float<T>(rstd[i] * (g[2 * k] - h[2 * k] * sum));
            dx[half + j] = dt_from_float<T>(rstd[i] * (g[2 * k + 1] - h[2 * k + 1] * sum));
        }
    }
    for (int turn = 0; turn < WARPS; turn++) {
        if (warp == turn)
#pragma unroll
            for (int k = 0; k < PAIRS; k++) {
                int j = lane + k * 32;

                if (j >= half)
                    continue;
                sums[j] = dw[2 * k] + (turn > 0 ? sums[j] : 0.0f);
                sums[half + j] = dw[2 * k + 1] + (turn > 0 ? sums[half + j] : 0.0f);
            }
        __syncthreads();
    }
    for (int j = (int)threadIdx.x; j < r.d; j += WARPS * 32)
        parts[(int64_t)blockIdx.x * r.d + j] = sums[j];
}

static bool given(const dt_tensor *x)
{
    return x != NULL && x->data != NULL;
}

static rotary describe(const dt_heads *x, const dt_tensor *angles)
{
    rotary r = {};

    DT_ASSERT(x->width % 2 == 0 && angles->dtype == DT_F32 && dt_tensor_cols(angles) == x->width &&
              dt_tensor_rows(angles) >= x->rows);
    r.rows = x->rows;
    r.heads = x->heads;
    r.d = x->width;
    r.count = x->batch * x->rows * x->heads;
    return r;
}

dt_status dt_cuda_rotary_forward(dt_device *device, const dt_heads *y, dt_tensor *rstd,
                                 const dt_heads *x, const dt_tensor *w, const dt_tensor *angles,
                                 double eps, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    rotary r = describe(x, angles);

    DT_ASSERT(given(w) == given(rstd) && y->dtype == x->dtype && y->width == x->width &&
              y->heads == x->heads);
    r.x = places_of(x);
    r.y = places_of(y);
    r.eps = (float)eps;
    if (r.count == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(x->dtype, "rotary", err, {
        DT_CUDA_LAUNCH((rotary_forward<T>), (unsigned)dt_cuda_ceil(r.count, WARPS), WARPS * 32, 0,
                       state->stream, r, given(w) ? (float *)rstd->data : NULL,
                       given(w) ? (const T *)w->data : NULL, (const float *)angles->data);
    });
    return dt_cuda_launched("rotary", err);
}

dt_status dt_cuda_rotary_backward(dt_device *device, const dt_heads *dx, dt_tensor *dw,
                                  const dt_heads *dy, const dt_heads *x, const dt_tensor *rstd,
                                  const dt_tensor *w, const dt_tensor *angles, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    rotary r = describe(dy, angles);
    int64_t most = (int64_t)state->processors * 2, wanted = dt_cuda_ceil(r.count, WARPS);
    unsigned blocks = (unsigned)(wanted < most ? wanted : most);
    const float *angle = (const float *)angles->data;
    dt_status st = DT_OK;
    void *scratch;

    DT_ASSERT((given(w) || !given(dw)) && given(w) == given(rstd) && dx->dtype == dy->dtype);
    r.dy = places_of(dy);
    r.dx = places_of(dx);
    if (r.count == 0)
        return DT_OK;
    if (!given(w)) {
        DT_CUDA_DISPATCH(dy->dtype, "rotary", err, {
            DT_CUDA_LAUNCH((rotary_backward<T>), (unsigned)wanted, WARPS * 32, 0, state->stream, r,
                           angle);
        });
        return dt_cuda_launched("rotary", err);
    }
    if (r.d > D_MAX)
        DT_THROW(
            err, DT_ERR_UNSUPPORTED,
            "rotary: norms of heads of %lld are wider than the %d that the CUDA kernel supports",
            (long long)r.d, D_MAX);
    r.x = places_of(x);
    DT_TRY(dt_cuda_scratch(&scratch, device, blocks * (size_t)r.d * sizeof(float), err));
    DT_CUDA_DISPATCH(dy->dtype, "rotary", err, {
        DT_CUDA_LAUNCH((rotary_norm_backward<T>), blocks, WARPS * 32, 0, state->stream, r,
                       (float *)scratch, (const float *)rstd->data, (const T *)w->data, angle);
    });
    DT_TRY(dt_cuda_launched("rotary", err));
    if (given(dw))
        DT_TRY(dt_columns_add(state, (float *)dw->data, NULL, (const float *)scratch, blocks, r.d,
                              r.d, "rotary", err));
out:
    return st;
}
