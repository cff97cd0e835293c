/* rotary: rotates the heads of a row, one warp per head; each lane has pairs of elements, 32 apart.
 *
 * dw        blocks of the backward kernel process fixed heads, keep their sums in registers and add them in
 *           the order of their warps; the blocks' sums are added in order (columns.cuh)
 * Errors    DT_ERR_UNSUPPORTED for heads wider than D_MAX with a norm
 */
#include "engine/ops/cuda/columns.cuh"

#define WARPS 8 /* warps per block */
#define D_MAX 256
#define EACH  (D_MAX / 32) /* elements of a head per lane, at most */

/* Like dt_heads; `data` is passed to the kernel in the type of the elements. */
struct places {
    void *data;
    int64_t row, sequence;
};

struct rotary {
    places x, y; /* forward: from x to y. backward: from dy to dx; x is the input of the norm */
    places dy, dx;
    int64_t rows, heads, d, count; /* count: heads of all rows of all sequences */
    int turned;                    /* elements of a head that are rotated */
    float shift, eps;
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
    return angles + i / r.heads % r.rows * r.turned;
}

/* w NULL: no norm. y may be x: only the lane that writes an element reads it. */
template <typename T>
__global__ void rotary_forward(rotary r, float *rstd, const T *w, const float *angles)
{
    int lane = (int)threadIdx.x % 32, half = r.turned / 2;
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
        for (int j = r.turned + lane; j < r.d; j += 32)
            squares += dt_to_float(x[j]) * dt_to_float(x[j]);
        factor = rsqrtf(dt_warp_sum(squares) / (float)r.d + r.eps);
        if (lane == 0)
            rstd[i] = factor;
    }
    for (int j = lane; j < half; j += 32) {
        float first = dt_to_float(x[j]), second = dt_to_float(x[half + j]);
        float c = angle[j], s = angle[half + j];

        if (w != NULL) {
            first *= factor * (r.shift + dt_to_float(w[j]));
            second *= factor * (r.shift + dt_to_float(w[half + j]));
        }
        y[j] = dt_from_float<T>(first * c - second * s);
        y[half + j] = dt_from_float<T>(second * c + first * s);
    }
    for (int j = r.turned + lane; j < r.d; j += 32)
        y[j] = w != NULL
                   ? dt_from_float<T>(dt_to_float(x[j]) * factor * (r.shift + dt_to_float(w[j])))
                   : x[j];
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
    int lane = (int)threadIdx.x % 32, half = r.turned / 2;
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;

    if (i >= r.count)
        return;
    for (int j = r.turned + lane; j < r.d; j += 32)
        head_at<T>(r, r.dx, i)[j] = head_at<T>(r, r.dy, i)[j];
    for (int j = lane; j < half; j += 32) {
        T *dx = head_at<T>(r, r.dx, i);
        float first, second;

        turned_back(&first, &second, head_at<T>(r, r.dy, i), angles_at(r, angles, i), j, half);
        dx[j] = dt_from_float<T>(first);
        dx[half + j] = dt_from_float<T>(second);
    }
}

/* Element j of dy, rotated back if it is among those that are rotated. */
template <typename T>
__device__ inline float element_back(const rotary &r, const T *dy, const float *angle, int j)
{
    int half = r.turned / 2;
    float first, second;

    if (j >= r.turned)
        return dt_to_float(dy[j]);
    turned_back(&first, &second, dy, angle, j < half ? j : j - half, half);
    return j < half ? first : second;
}

/* Rotates dy back, and computes the gradient through the norm. A lane has the elements lane, lane + 32, ... of a
 * head. parts (blocks, D): the block's sums for dw. dx may be dy: the warp reads all of a head before it writes. */
template <typename T>
__global__ void rotary_norm_backward(rotary r, float *parts, const float *rstd, const T *w,
                                     const float *angles)
{
    __shared__ float sums[D_MAX];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    float dw[EACH] = {};

    for (int64_t i = (int64_t)blockIdx.x * WARPS + warp; i < r.count;
         i += (int64_t)gridDim.x * WARPS) {
        const T *x = head_at<T>(r, r.x, i), *dy = head_at<T>(r, r.dy, i);
        const float *angle = angles_at(r, angles, i);
        T *dx = head_at<T>(r, r.dx, i);
        float g[EACH], h[EACH], sum = 0.0f;

#pragma unroll
        for (int k = 0; k < EACH; k++) {
            int j = lane + k * 32;

            if (j >= r.d)
                continue;
            g[k] = element_back(r, dy, angle, j);
            h[k] = dt_to_float(x[j]) * rstd[i];
            dw[k] += g[k] * h[k];
            g[k] *= r.shift + dt_to_float(w[j]);
            sum += g[k] * h[k];
        }
        sum = dt_warp_sum(sum) / (float)r.d;
        __syncwarp();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            int j = lane + k * 32;

            if (j < r.d)
                dx[j] = dt_from_float<T>(rstd[i] * (g[k] - h[k] * sum));
        }
    }
    for (int turn = 0; turn < WARPS; turn++) {
        if (warp == turn)
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                int j = lane + k * 32;

                if (j < r.d)
                    sums[j] = dw[k] + (turn > 0 ? sums[j] : 0.0f);
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

static rotary describe(const dt_heads *x, const dt_tensor *angles, double shift)
{
    rotary r = {};

    DT_ASSERT(dt_tensor_cols(angles) % 2 == 0 && angles->dtype == DT_F32 &&
              dt_tensor_cols(angles) <= x->width && dt_tensor_rows(angles) >= x->rows);
    r.turned = (int)dt_tensor_cols(angles);
    r.shift = (float)shift;
    r.rows = x->rows;
    r.heads = x->heads;
    r.d = x->width;
    r.count = x->batch * x->rows * x->heads;
    return r;
}

dt_status dt_cuda_rotary_forward(dt_device *device, const dt_heads *y, dt_tensor *rstd,
                                 const dt_heads *x, const dt_tensor *w, double shift,
                                 const dt_tensor *angles, double eps, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    rotary r = describe(x, angles, shift);

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
                                  const dt_tensor *w, double shift, const dt_tensor *angles,
                                  dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    rotary r = describe(dy, angles, shift);
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
        DT_TRY(dt_columns_add(state, {{(float *)dw->data}}, (const float *)scratch, blocks, r.d,
                              r.d, "rotary", err));
out:
    return st;
}

/* heads_norm: an rmsnorm over all heads of a row, whose sums the caller adds up over ranks. One warp per row; dw by one
 * thread per column over stripes of rows, whose sums are added in order (columns.cuh). */

struct head_rows {
    places a, b, out;
    int64_t rows, count, width; /* rows of a sequence, of all; elements of a row */
    float shift, all, eps;      /* all: elements of a row on all ranks */
};

template <typename T> __device__ inline T *row_at(const head_rows &r, const places &p, int64_t i)
{
    return (T *)p.data + i / r.rows * p.sequence + i % r.rows * p.row;
}

__device__ inline float rstd_at(const head_rows &r, const float *sums, int64_t i)
{
    return rsqrtf(sums[i] / r.all + r.eps);
}

template <typename T> __global__ void row_sums(head_rows r, float *sums, const T *w)
{
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    float sum = 0.0f;
    const T *a, *b;

    if (i >= r.count)
        return;
    a = row_at<T>(r, r.a, i);
    b = row_at<T>(r, r.b, i);
    for (int64_t j = threadIdx.x % 32; j < r.width; j += 32)
        sum += dt_to_float(a[j]) * dt_to_float(b[j]) *
               (w != NULL ? r.shift + dt_to_float(w[j]) : 1.0f);
    sum = dt_warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        sums[i] = sum;
}

template <typename T> __global__ void row_norms(head_rows r, const float *sums, const T *w)
{
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const T *a;
    T *out;

    if (i >= r.count)
        return;
    a = row_at<T>(r, r.a, i);
    out = row_at<T>(r, r.out, i);
    for (int64_t j = threadIdx.x % 32; j < r.width; j += 32)
        out[j] = dt_from_float<T>(dt_to_float(a[j]) * rstd_at(r, sums, i) *
                                  (r.shift + dt_to_float(w[j])));
}

/* a: dy, b: x. */
template <typename T>
__global__ void row_norms_backward(head_rows r, const float *sums, const float *products,
                                   const T *w)
{
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    float rstd, mean;
    const T *a, *b;
    T *out;

    if (i >= r.count)
        return;
    a = row_at<T>(r, r.a, i);
    b = row_at<T>(r, r.b, i);
    out = row_at<T>(r, r.out, i);
    rstd = rstd_at(r, sums, i);
    mean = products[i] / r.all * rstd * rstd;
    for (int64_t j = threadIdx.x % 32; j < r.width; j += 32)
        out[j] = dt_from_float<T>(
            rstd * (dt_to_float(a[j]) * (r.shift + dt_to_float(w[j])) - dt_to_float(b[j]) * mean));
}

/* Computes parts (stripes, width) of dw, before dx overwrites dy. */
template <typename T>
__global__ void row_norms_columns(head_rows r, float *parts, const float *sums)
{
    int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t begin = r.count * blockIdx.y / gridDim.y, end = r.count * (blockIdx.y + 1) / gridDim.y;
    float dw = 0.0f;

    if (column >= r.width)
        return;
    for (int64_t i = begin; i < end; i++)
        dw += dt_to_float(row_at<T>(r, r.a, i)[column]) *
              dt_to_float(row_at<T>(r, r.b, i)[column]) * rstd_at(r, sums, i);
    parts[(int64_t)blockIdx.y * r.width + column] = dw;
}

static head_rows describe_rows(const dt_heads *a, const dt_heads *b, const dt_heads *out,
                               double shift, int64_t all, double eps)
{
    head_rows r = {};

    r.a = places_of(a);
    r.b = places_of(b);
    if (out != NULL)
        r.out = places_of(out);
    r.rows = a->rows;
    r.count = a->batch * a->rows;
    r.width = a->heads * a->width;
    r.shift = (float)shift;
    r.all = (float)all;
    r.eps = (float)eps;
    DT_ASSERT(b->rows == a->rows && b->heads * b->width == r.width && b->dtype == a->dtype);
    return r;
}

dt_status dt_cuda_heads_sum(dt_device *device, dt_tensor *sums, const dt_heads *a,
                            const dt_heads *b, const dt_tensor *w, double shift, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    head_rows r = describe_rows(a, b, NULL, shift, 0, 0);

    if (r.count == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(a->dtype, "norm of heads", err, {
        DT_CUDA_LAUNCH((row_sums<T>), (unsigned)dt_cuda_ceil(r.count, WARPS), WARPS * 32, 0,
                       state->stream, r, (float *)sums->data,
                       given(w) ? (const T *)w->data : (const T *)NULL);
    });
    return dt_cuda_launched("norm of heads", err);
}

dt_status dt_cuda_heads_norm_forward(dt_device *device, const dt_heads *y, const dt_heads *x,
                                     const dt_tensor *sums, const dt_tensor *w, double shift,
                                     int64_t width, double eps, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    head_rows r = describe_rows(x, x, y, shift, width, eps);

    if (r.count == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(x->dtype, "norm of heads", err, {
        DT_CUDA_LAUNCH((row_norms<T>), (unsigned)dt_cuda_ceil(r.count, WARPS), WARPS * 32, 0,
                       state->stream, r, (const float *)sums->data, (const T *)w->data);
    });
    return dt_cuda_launched("norm of heads", err);
}

dt_status dt_cuda_heads_norm_backward(dt_device *device, const dt_heads *dx, dt_tensor *dw,
                                      const dt_heads *dy, const dt_heads *x, const dt_tensor *sums,
                                      const dt_tensor *products, const dt_tensor *w, double shift,
                                      int64_t width, double eps, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    head_rows r = describe_rows(dy, x, dx, shift, width, eps);
    unsigned column_blocks = (unsigned)dt_cuda_ceil(r.width, DT_CUDA_BLOCK);
    int64_t most = dt_cuda_ceil((int64_t)state->processors * 8, column_blocks);
    unsigned stripes =
        (unsigned)(most < dt_cuda_ceil(r.count, 8) ? most : dt_cuda_ceil(r.count, 8));
    dt_status st = DT_OK;
    void *scratch;

    if (r.count == 0)
        return DT_OK;
    DT_TRY(dt_cuda_scratch(&scratch, device, stripes * (size_t)r.width * sizeof(float), err));
    DT_CUDA_DISPATCH(x->dtype, "norm of heads", err, {
        if (given(dw))
            DT_CUDA_LAUNCH((row_norms_columns<T>), dim3(column_blocks, stripes), DT_CUDA_BLOCK, 0,
                           state->stream, r, (float *)scratch, (const float *)sums->data);
        DT_CUDA_LAUNCH((row_norms_backward<T>), (unsigned)dt_cuda_ceil(r.count, WARPS), WARPS * 32,
                       0, state->stream, r, (const float *)sums->data,
                       (const float *)products->data, (const T *)w->data);
    });
    DT_TRY(dt_cuda_launched("norm of heads", err));
    if (given(dw))
        DT_TRY(dt_columns_add(state, {{(float *)dw->data}}, (const float *)scratch, stripes,
                              r.width, r.width, "norm of heads", err));
out:
    return st;
}
