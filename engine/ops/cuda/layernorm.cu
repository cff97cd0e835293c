/* layernorm: computes forward, and backward, which adds to the residual stream's gradient (ops.h).
 *
 * Forward   one warp per row. Rows of up to VECTORS vectors per lane stay in registers between the sum, the
 *           variance and the result; longer rows are read again.
 * Backward  one warp per row. While it computes a row, the copy of its next row into shared memory is under way,
 *           which takes no registers. The warps of a block process fixed rows, keep their parts of dw, db and dbias
 *           in registers, and add them in the order of the warps; the blocks' sums are added in order
 *           (columns.cuh). Rows that do not fit the registers, or are not aligned to 16 bytes, are read
 *           twice: for dx with one warp per row, and for dw and db with one thread per column
 * Bytes     for C bf16 elements: forward 4 C per row, backward 8 C (reads dy, x, dx; writes dx)
 */
#include "engine/ops/cuda/columns.cuh"
#include "engine/ops/cuda/ptx.cuh"

#define WARPS         8    /* warps per block, at most */
#define SHARED_BESIDE 1024 /* bytes of shared memory per block that the driver takes */

template <typename T, int VECTORS>
__global__ void forward_registers(T *y, float *mean, float *rstd, const T *x, const T *w,
                                  const T *b, int64_t n, int c, float eps)
{
    constexpr int N = dt_vec<T>::N;
    int lane = (int)threadIdx.x % 32;
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    dt_vec<T> in[VECTORS];
    float sum = 0.0f, squares = 0.0f, m, r;

    if (row >= n)
        return;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        int at = (i * 32 + lane) * N;

        if (at < c) {
            in[i] = *(const dt_vec<T> *)(x + row * c + at);
#pragma unroll
            for (int k = 0; k < N; k++)
                sum += dt_to_float(in[i].v[k]);
        }
    }
    m = dt_warp_sum(sum) / (float)c;
#pragma unroll
    for (int i = 0; i < VECTORS; i++)
        if ((i * 32 + lane) * N < c)
#pragma unroll
            for (int k = 0; k < N; k++) {
                float centred = dt_to_float(in[i].v[k]) - m;

                squares += centred * centred;
            }
    r = rsqrtf(dt_warp_sum(squares) / (float)c + eps);
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        int at = (i * 32 + lane) * N;

        if (at < c) {
            dt_vec<T> wv = *(const dt_vec<T> *)(w + at), bv = *(const dt_vec<T> *)(b + at), out;

#pragma unroll
            for (int k = 0; k < N; k++)
                out.v[k] =
                    dt_from_float<T>((dt_to_float(in[i].v[k]) - m) * r * dt_to_float(wv.v[k]) +
                                     dt_to_float(bv.v[k]));
            *(dt_vec<T> *)(y + row * c + at) = out;
        }
    }
    if (lane == 0) {
        mean[row] = m;
        rstd[row] = r;
    }
}

template <typename T>
__global__ void forward_any(T *y, float *mean, float *rstd, const T *x, const T *w, const T *b,
                            int64_t n, int64_t c, float eps)
{
    int lane = (int)threadIdx.x % 32;
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    float sum = 0.0f, squares = 0.0f, m, r;

    if (row >= n)
        return;
    x += row * c;
    y += row * c;
    for (int64_t j = lane; j < c; j += 32)
        sum += dt_to_float(x[j]);
    m = dt_warp_sum(sum) / (float)c;
    for (int64_t j = lane; j < c; j += 32) {
        float centred = dt_to_float(x[j]) - m;

        squares += centred * centred;
    }
    r = rsqrtf(dt_warp_sum(squares) / (float)c + eps);
    for (int64_t j = lane; j < c; j += 32)
        y[j] =
            dt_from_float<T>((dt_to_float(x[j]) - m) * r * dt_to_float(w[j]) + dt_to_float(b[j]));
    if (lane == 0) {
        mean[row] = m;
        rstd[row] = r;
    }
}

template <typename T>
static void forward_vectors(dt_cuda_state *state, unsigned blocks, int vectors, T *y, float *mean,
                            float *rstd, const T *x, const T *w, const T *b, int64_t n, int c,
                            float eps)
{
#define CASE(V)                                                                                  \
    case V:                                                                                      \
        DT_CUDA_LAUNCH((forward_registers<T, V>), blocks, WARPS * 32, 0, state->stream, y, mean, \
                       rstd, x, w, b, n, c, eps);                                                \
        break
    switch (vectors) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
    default:
        break;
    }
#undef CASE
}

dt_status dt_cuda_layernorm_forward(dt_device *device, dt_tensor *y, dt_tensor *mean,
                                    dt_tensor *rstd, const dt_tensor *x, const dt_tensor *w,
                                    const dt_tensor *b, double eps, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = dt_tensor_rows(x), c = dt_tensor_cols(x);
    unsigned blocks = (unsigned)dt_cuda_ceil(n, WARPS);

    DT_ASSERT(dt_tensor_elems(y) == n * c && dt_tensor_elems(w) == c && dt_tensor_elems(b) == c &&
              mean->dtype == DT_F32 && rstd->dtype == DT_F32);
    if (n == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(x->dtype, "layernorm", err, {
        bool aligned = dt_cuda_aligned<T>(x->data, c) && dt_cuda_aligned<T>(y->data, c) &&
                       dt_cuda_aligned<T>(w->data, c) && dt_cuda_aligned<T>(b->data, c);
        int64_t vectors = dt_cuda_ceil(c, 32 * dt_vec<T>::N);

        if (aligned && vectors <= 8)
            forward_vectors<T>(state, blocks, (int)vectors, (T *)y->data, (float *)mean->data,
                               (float *)rstd->data, (const T *)x->data, (const T *)w->data,
                               (const T *)b->data, n, (int)c, (float)eps);
        else
            DT_CUDA_LAUNCH((forward_any<T>), blocks, WARPS * 32, 0, state->stream, (T *)y->data,
                           (float *)mean->data, (float *)rstd->data, (const T *)x->data,
                           (const T *)w->data, (const T *)b->data, n, c, (float)eps);
    });
    return dt_cuda_launched("layernorm", err);
}

/* --- backward */

/* A row of dy, x and dx in shared memory. Each lane reads only what it has copied itself, so that waiting for its own
 * copies is enough. */
template <typename T, int VECTORS> struct staged_row {
    dt_vec<T> dy[VECTORS][32], x[VECTORS][32], dx[VECTORS][32];
};

/* Queues the copies of this lane; nothing behind the last row. */
template <typename T, int VECTORS>
__device__ inline void stage_row(staged_row<T, VECTORS> *to, const T *dy, const T *x, const T *dx,
                                 int64_t row, int64_t n, int c, int lane)
{
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        int at = (i * 32 + lane) * dt_vec<T>::N;

        if (row >= n || at >= c)
            continue;
        dt_ptx_copy_16(dt_shared_at(&to->dy[i][lane]), dy + row * c + at, true);
        dt_ptx_copy_16(dt_shared_at(&to->x[i][lane]), x + row * c + at, true);
        dt_ptx_copy_16(dt_shared_at(&to->dx[i][lane]), dx + row * c + at, true);
    }
    dt_tile_commit();
}

/* dx += rstd * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * w. parts (blocks, SUMS, C): the
 * block's sums for dw, db and, with three SUMS, of dx as it was. Shared memory: the sums, and two rows for each warp. */
template <typename T, int VECTORS, int SUMS>
__global__ void __launch_bounds__(WARPS * 32)
    backward_registers(T *dx, float *parts, const T *dy, const T *x, const float *mean,
                       const float *rstd, const T *w, int64_t n, int c)
{
    DT_CUDA_DYNAMIC_SHARED(memory);
    constexpr int N = dt_vec<T>::N;
    float *sums = (float *)memory; /* (SUMS, C) */
    int warps = (int)blockDim.x / 32, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    staged_row<T, VECTORS> *stages = (staged_row<T, VECTORS> *)(sums + SUMS * c) + 2 * warp;
    int64_t row = (int64_t)blockIdx.x * warps + warp, stride = (int64_t)gridDim.x * warps;
    float dw[VECTORS * N] = {}, db[VECTORS * N] = {}, dbias[SUMS > 2 ? VECTORS * N : 1] = {};
    int now = 0;

    stage_row(&stages[0], dy, x, dx, row, n, c, lane);
    for (; row < n; row += stride, now = 1 - now) {
        const staged_row<T, VECTORS> *in = &stages[now];
        float m = mean[row], r = rstd[row], g_sum = 0.0f, gx_sum = 0.0f;

        stage_row(&stages[1 - now], dy, x, dx, row + stride, n, c, lane);
        dt_tile_wait<1>(); /* this row is there, the next one may not be */
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            int at = (i * 32 + lane) * N;
            dt_vec<T> dyv, xv, wv;

            if (at >= c)
                continue;
            dyv = in->dy[i][lane];
            xv = in->x[i][lane];
            wv = *(const dt_vec<T> *)(w + at);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float d = dt_to_float(dyv.v[k]), g = d * dt_to_float(wv.v[k]);
                float xhat = (dt_to_float(xv.v[k]) - m) * r;

                g_sum += g;
                gx_sum += g * xhat;
                dw[i * N + k] += d * xhat;
                db[i * N + k] += d;
            }
        }
        g_sum = dt_warp_sum(g_sum) / (float)c;
        gx_sum = dt_warp_sum(gx_sum) / (float)c;
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            int at = (i * 32 + lane) * N;
            dt_vec<T> dyv, xv, out, wv;

            if (at >= c)
                continue;
            dyv = in->dy[i][lane];
            xv = in->x[i][lane];
            out = in->dx[i][lane];
            wv = *(const dt_vec<T> *)(w + at);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float g = dt_to_float(dyv.v[k]) * dt_to_float(wv.v[k]);
                float xhat = (dt_to_float(xv.v[k]) - m) * r, was = dt_to_float(out.v[k]);

                if (SUMS > 2)
                    dbias[SUMS > 2 ? i * N + k : 0] += was;
                out.v[k] = dt_from_float<T>(was + r * (g - g_sum - xhat * gx_sum));
            }
            *(dt_vec<T> *)(dx + row * c + at) = out;
        }
    }
    dt_tile_wait<0>();
    for (int turn = 0; turn < warps; turn++) {
        if (warp == turn)
#pragma unroll
            for (int i = 0; i < VECTORS; i++)
#pragma unroll
                for (int k = 0; k < N; k++) {
                    int at = (i * 32 + lane) * N + k;

                    if (at < c) {
                        sums[at] = dw[i * N + k] + (turn > 0 ? sums[at] : 0.0f);
                        sums[c + at] = db[i * N + k] + (turn > 0 ? sums[c + at] : 0.0f);
                        if (SUMS > 2)
                            sums[2 * c + at] = dbias[SUMS > 2 ? i * N + k : 0] +
                                               (turn > 0 ? sums[2 * c + at] : 0.0f);
                    }
                }
        __syncthreads();
    }
    for (int j = (int)threadIdx.x; j < SUMS * c; j += (int)blockDim.x)
        parts[(int64_t)blockIdx.x * SUMS * c + j] = sums[j];
}

/* dx += rstd * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * w. One warp per row. */
template <typename T>
__global__ void backward_input(T *dx, const T *dy, const T *x, const float *mean, const float *rstd,
                               const T *w, int64_t n, int64_t c, bool aligned)
{
    constexpr int N = dt_vec<T>::N;
    int lane = (int)threadIdx.x % 32;
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    float g_sum = 0.0f, gx_sum = 0.0f, m, r;

    if (row >= n)
        return;
    dx += row * c;
    dy += row * c;
    x += row * c;
    m = mean[row];
    r = rstd[row];
    if (aligned) {
        for (int64_t j = lane * N; j < c; j += 32 * N) {
            dt_vec<T> dyv = *(const dt_vec<T> *)(dy + j), xv = *(const dt_vec<T> *)(x + j);
            dt_vec<T> wv = *(const dt_vec<T> *)(w + j);

#pragma unroll
            for (int k = 0; k < N; k++) {
                float g = dt_to_float(dyv.v[k]) * dt_to_float(wv.v[k]);

                g_sum += g;
                gx_sum += g * (dt_to_float(xv.v[k]) - m) * r;
            }
        }
    } else {
        for (int64_t j = lane; j < c; j += 32) {
            float g = dt_to_float(dy[j]) * dt_to_float(w[j]);

            g_sum += g;
            gx_sum += g * (dt_to_float(x[j]) - m) * r;
        }
    }
    g_sum = dt_warp_sum(g_sum) / (float)c;
    gx_sum = dt_warp_sum(gx_sum) / (float)c;
    if (aligned) {
        for (int64_t j = lane * N; j < c; j += 32 * N) {
            dt_vec<T> dyv = *(const dt_vec<T> *)(dy + j), xv = *(const dt_vec<T> *)(x + j);
            dt_vec<T> wv = *(const dt_vec<T> *)(w + j), out = *(const dt_vec<T> *)(dx + j);

#pragma unroll
            for (int k = 0; k < N; k++) {
                float g = dt_to_float(dyv.v[k]) * dt_to_float(wv.v[k]);
                float xhat = (dt_to_float(xv.v[k]) - m) * r;

                out.v[k] =
                    dt_from_float<T>(dt_to_float(out.v[k]) + r * (g - g_sum - xhat * gx_sum));
            }
            *(dt_vec<T> *)(dx + j) = out;
        }
    } else {
        for (int64_t j = lane; j < c; j += 32) {
            float g = dt_to_float(dy[j]) * dt_to_float(w[j]);
            float xhat = (dt_to_float(x[j]) - m) * r;

            dx[j] = dt_from_float<T>(dt_to_float(dx[j]) + r * (g - g_sum - xhat * gx_sum));
        }
    }
}

/* Sums the columns of a stripe of rows: one thread per column, so that neighbouring threads read
 * neighbouring columns; blockIdx.y is the stripe. parts (stripes, 2, C): dw, db. */
template <typename T>
__global__ void backward_columns(float *parts, const T *dy, const T *x, const float *mean,
                                 const float *rstd, int64_t n, int64_t c)
{
    int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t begin = n * blockIdx.y / gridDim.y, end = n * (blockIdx.y + 1) / gridDim.y;
    float dw = 0.0f, db = 0.0f;

    if (column >= c)
        return;
#pragma unroll 4
    for (int64_t row = begin; row < end; row++) {
        float g = dt_to_float(dy[row * c + column]);

        db += g;
        dw += g * (dt_to_float(x[row * c + column]) - mean[row]) * rstd[row];
    }
    parts += (int64_t)blockIdx.y * 2 * c;
    parts[column] = dw;
    parts[c + column] = db;
}

/* What backward reads and writes. */
struct backward_call {
    void *dx;
    const void *dy, *x, *w;
    const float *mean, *rstd;
    int64_t n, c;
};

/* Launches `blocks` blocks of at most WARPS warps; two blocks fit on a multiprocessor. */
template <typename T, int VECTORS, int SUMS>
static dt_status backward_launch(dt_cuda_state *state, unsigned blocks, float *parts,
                                 const backward_call &call, dt_error *err)
{
    size_t sums = SUMS * (size_t)call.c * sizeof(float), each = 2 * sizeof(staged_row<T, VECTORS>);
    size_t room = (size_t)state->shared_bytes / 2 - SHARED_BESIDE;
    size_t warps = room > sums + each ? (room - sums) / each : 1, bytes;
    dt_status st = DT_OK;

    if (warps > WARPS)
        warps = WARPS;
    bytes = sums + warps * each;
    DT_TRY(
        dt_cuda_check(cudaFuncSetAttribute((const void *)backward_registers<T, VECTORS, SUMS>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
                      "layernorm", err));
    DT_CUDA_LAUNCH((backward_registers<T, VECTORS, SUMS>), blocks, (unsigned)warps * 32, bytes,
                   state->stream, (T *)call.dx, parts, (const T *)call.dy, (const T *)call.x,
                   call.mean, call.rstd, (const T *)call.w, call.n, (int)call.c);
out:
    return st;
}

/* Like forward_vectors. */
template <typename T, int SUMS>
static dt_status backward_vectors(dt_cuda_state *state, unsigned blocks, int vectors, float *parts,
                                  const backward_call &call, dt_error *err)
{
#define CASE(V) \
    case V:     \
        return backward_launch<T, V, SUMS>(state, blocks, parts, call, err)
    switch (vectors) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
    default:
        return DT_OK;
    }
#undef CASE
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows that do not fit the registers, or are not aligned. */
template <typename T>
static dt_status backward_any(dt_device *device, dt_columns_out out, const backward_call &call,
                              dt_dtype dtype, bool aligned, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = call.n, c = call.c;
    unsigned across = (unsigned)dt_cuda_ceil(c, DT_CUDA_BLOCK);
    int64_t most = dt_cuda_ceil((int64_t)state->processors * 8, across);
    unsigned stripes = (unsigned)least(most, dt_cuda_ceil(n, 8));
    dt_status st = DT_OK;
    void *parts;

    if (out.at[2] != NULL)
        DT_TRY(dt_columns_sum(device, out.at[2], {call.dx, 1, n, c, n * c, c}, dtype, "layernorm",
                              err));
    out.at[2] = NULL;
    DT_TRY(dt_cuda_scratch(&parts, device, stripes * 2 * (size_t)c * sizeof(float), err));
    DT_CUDA_LAUNCH((backward_columns<T>), dim3(across, stripes), DT_CUDA_BLOCK, 0, state->stream,
                   (float *)parts, (const T *)call.dy, (const T *)call.x, call.mean, call.rstd, n,
                   c);
    DT_CUDA_LAUNCH((backward_input<T>), (unsigned)dt_cuda_ceil(n, WARPS), WARPS * 32, 0,
                   state->stream, (T *)call.dx, (const T *)call.dy, (const T *)call.x, call.mean,
                   call.rstd, (const T *)call.w, n, c, aligned);
    DT_TRY(dt_cuda_launched("layernorm", err));
    DT_TRY(dt_columns_add(state, out, (const float *)parts, stripes, c, 2 * c, "layernorm", err));
out:
    return st;
}

/* Rows that fit the registers of a warp. */
template <typename T>
static dt_status backward_fitting(dt_device *device, dt_columns_out out, const backward_call &call,
                                  dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int vectors = (int)dt_cuda_ceil(call.c, 32 * dt_vec<T>::N);
    unsigned blocks = (unsigned)least((int64_t)state->processors * 2, dt_cuda_ceil(call.n, WARPS));
    int64_t sums = out.at[2] != NULL ? 3 : 2;
    dt_status st = DT_OK;
    void *scratch;
    float *parts;

    DT_TRY(
        dt_cuda_scratch(&scratch, device, (size_t)(blocks * sums * call.c) * sizeof(float), err));
    parts = (float *)scratch;
    if (sums == 3)
        DT_TRY((backward_vectors<T, 3>(state, blocks, vectors, parts, call, err)));
    else
        DT_TRY((backward_vectors<T, 2>(state, blocks, vectors, parts, call, err)));
    DT_TRY(dt_cuda_launched("layernorm", err));
    DT_TRY(dt_columns_add(state, out, parts, blocks, call.c, sums * call.c, "layernorm", err));
out:
    return st;
}

/* dbias: NULL, or as layernorm_backward_bias has it. */
static dt_status backward(dt_device *device, dt_tensor *dx, dt_tensor *dw, dt_tensor *db,
                          dt_tensor *dbias, const dt_tensor *dy, const dt_tensor *x,
                          const dt_tensor *mean, const dt_tensor *rstd, const dt_tensor *w,
                          dt_error *err)
{
    int64_t n = dt_tensor_rows(x), c = dt_tensor_cols(x);
    const backward_call call = {
        dx->data, dy->data, x->data, w->data, (const float *)mean->data, (const float *)rstd->data,
        n,        c};
    const dt_columns_out out = {
        {(float *)dw->data, (float *)db->data, dbias != NULL ? (float *)dbias->data : NULL}};

    DT_ASSERT((dw->data == NULL || dw->dtype == DT_F32) &&
              (db->data == NULL || db->dtype == DT_F32) && dt_tensor_elems(dy) == n * c &&
              dt_tensor_elems(dx) == n * c &&
              (dbias == NULL || (dbias->dtype == DT_F32 && dt_tensor_elems(dbias) == c)));
    if (n == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(x->dtype, "layernorm", err, {
        bool aligned = dt_cuda_aligned<T>(x->data, c) && dt_cuda_aligned<T>(dy->data, c) &&
                       dt_cuda_aligned<T>(w->data, c) && dt_cuda_aligned<T>(dx->data, c);

        if (aligned && dt_cuda_ceil(c, 32 * dt_vec<T>::N) <= 8)
            return backward_fitting<T>(device, out, call, err);
        return backward_any<T>(device, out, call, x->dtype, aligned, err);
    });
    return DT_OK;
}

dt_status dt_cuda_layernorm_backward(dt_device *device, dt_tensor *dx, dt_tensor *dw, dt_tensor *db,
                                     const dt_tensor *dy, const dt_tensor *x, const dt_tensor *mean,
                                     const dt_tensor *rstd, const dt_tensor *w, dt_error *err)
{
    return backward(device, dx, dw, db, NULL, dy, x, mean, rstd, w, err);
}

dt_status dt_cuda_layernorm_backward_bias(dt_device *device, dt_tensor *dx, dt_tensor *dw,
                                          dt_tensor *db, dt_tensor *dbias, const dt_tensor *dy,
                                          const dt_tensor *x, const dt_tensor *mean,
                                          const dt_tensor *rstd, const dt_tensor *w, dt_error *err)
{
    return backward(device, dx, dw, db, dbias, dy, x, mean, rstd, w, err);
}
