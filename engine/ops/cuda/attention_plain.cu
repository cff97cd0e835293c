/* attention_plain: a warp owns a row: of queries (forward, dq) or of keys (dk, dv). It takes 32
 * rows of the other side at a time: a lane computes one row's products, then every lane adds all 32
 * to the columns that it holds. Sums stand in fp32 and in a fixed order.
 */
#include "engine/ops/cuda/attention_int.cuh"

#define WARPS     4 /* of a block */
#define D_MAX     256
#define LANE_COLS (D_MAX / 32)
#define FULL      0xffffffffu

/* Row `row` of q (which 0), k (1) or v (2) of head bh. */
template <typename T>
__device__ inline const T *row_of(const dt_attention &a, const void *qkv, int64_t bh, int64_t row,
                                  int which)
{
    return (const T *)qkv + ((bh / a.heads * a.t + row) * 3 + which) * a.c + bh % a.heads * a.d;
}

/* Row `row` of out or dout. */
template <typename T>
__device__ inline const T *out_row(const dt_attention &a, const void *out, int64_t bh, int64_t row)
{
    return (const T *)out + (bh / a.heads * a.queries + row) * a.c + bh % a.heads * a.d;
}

/* This warp's row, of `rows` of head *bh. */
__device__ inline int64_t warp_row(int64_t *bh, int64_t rows)
{
    int64_t blocks = (rows + WARPS - 1) / WARPS;

    *bh = blockIdx.x / blocks;
    return blockIdx.x % blocks * WARPS + threadIdx.x / 32;
}

template <typename T> __device__ inline float dot(const float *mine, const T *row, int64_t d)
{
    float sum = 0.0f;

    for (int64_t j = 0; j < d; j++)
        sum += mine[j] * dt_to_float(row[j]);
    return sum;
}

/* Reads a row into the warp's part of shared memory. */
template <typename T>
__device__ inline void keep_row(float *mine, const T *row, int64_t d, int lane)
{
    for (int64_t j = lane; j < d; j += 32)
        mine[j] = dt_to_float(row[j]);
    __syncwarp();
}

/* sum[i] += factor of the lane that owns the row, times the row, over the 32 rows from `first` that
 * are below `end`; sum holds the columns lane, lane + 32, ... */
template <typename T>
__device__ inline void add_rows(float *sum, float factor, const T *first, int64_t stride,
                                int64_t count, int64_t d, int lane)
{
    for (int r = 0; r < 32 && r < count; r++) {
        float f = __shfl_sync(FULL, factor, r);

#pragma unroll
        for (int i = 0; i < LANE_COLS; i++)
            if (lane + i * 32 < d)
                sum[i] += f * dt_to_float(first[r * stride + lane + i * 32]);
    }
}

template <typename T>
__device__ inline void write_row(T *row, const float *sum, float factor, int64_t d, int lane)
{
#pragma unroll
    for (int i = 0; i < LANE_COLS; i++)
        if (lane + i * 32 < d)
            row[lane + i * 32] = dt_from_float<T>(sum[i] * factor);
}

template <typename T> __global__ void forward(dt_attention a)
{
    __shared__ float rows[WARPS][D_MAX];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t bh, row = warp_row(&bh, a.queries), query = a.t - a.queries + row;
    int64_t last = dt_attention_last_key(a, query);
    const dt_philox_key drawn = dt_philox_now(&a.key);
    float sum[LANE_COLS] = {}, max = -INFINITY, total = 0.0f;

    if (row >= a.queries)
        return;
    keep_row(rows[warp], row_of<T>(a, a.qkv, bh, query, 0), a.d, lane);
    for (int64_t first = 0; first <= last; first += 32) {
        int64_t key = first + lane, count = last + 1 - first;
        float score = -INFINITY, top, weight;

        if (key <= last)
            score = a.scale * dot(rows[warp], row_of<T>(a, a.qkv, bh, key, 1), a.d);
        top = fmaxf(max, dt_warp_max(score));
        weight = expf(score - top); /* 0 beyond the last key */
        total = total * expf(max - top) + dt_warp_sum(weight);
#pragma unroll
        for (int i = 0; i < LANE_COLS; i++)
            sum[i] *= expf(max - top);
        max = top;
        if (a.p > 0.0f && key <= last)
            weight *= dt_attention_mask(a, drawn, bh, query, key);
        add_rows(sum, weight, row_of<T>(a, a.qkv, bh, first, 2), 3 * a.c, count, a.d, lane);
    }
    write_row((T *)out_row<T>(a, a.out_written, bh, row), sum, 1.0f / total, a.d, lane);
    if (lane == 0)
        a.lse[bh * a.queries + row] = max + logf(total);
}

/* dS of (query, key): P (mask dP - delta); *weight: mask P. Rows are given in shared memory. */
template <typename T>
__device__ inline float score_gradient(float *weight, const dt_attention &a,
                                       const dt_philox_key &drawn, int64_t bh, int64_t query,
                                       int64_t key, const float *q_or_k, const T *k_or_q,
                                       const float *dout_or_v, const T *v_or_dout)
{
    float probability = expf(a.scale * dot(q_or_k, k_or_q, a.d) - a.lse[bh * a.t + query]);
    float mask = a.p > 0.0f ? dt_attention_mask(a, drawn, bh, query, key) : 1.0f;

    *weight = probability * mask;
    return probability * (mask * dot(dout_or_v, v_or_dout, a.d) - a.delta[bh * a.t + query]);
}

template <typename T> __global__ void backward_queries(dt_attention a)
{
    __shared__ float rows[WARPS][2][D_MAX];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t bh, query = warp_row(&bh, a.t), last = dt_attention_last_key(a, query);
    const dt_philox_key drawn = dt_philox_now(&a.key);
    float sum[LANE_COLS] = {};

    if (query >= a.t)
        return;
    keep_row(rows[warp][0], row_of<T>(a, a.qkv, bh, query, 0), a.d, lane);
    keep_row(rows[warp][1], out_row<T>(a, a.dout, bh, query), a.d, lane);
    for (int64_t first = 0; first <= last; first += 32) {
        int64_t key = first + lane;
        float ds = 0.0f, weight;

        if (key <= last)
            ds = score_gradient<T>(&weight, a, drawn, bh, query, key, rows[warp][0],
                                   row_of<T>(a, a.qkv, bh, key, 1), rows[warp][1],
                                   row_of<T>(a, a.qkv, bh, key, 2));
        add_rows(sum, ds, row_of<T>(a, a.qkv, bh, first, 1), 3 * a.c, last + 1 - first, a.d, lane);
    }
    write_row((T *)row_of<T>(a, a.dqkv, bh, query, 0), sum, a.scale, a.d, lane);
}

template <typename T> __global__ void backward_keys(dt_attention a)
{
    __shared__ float rows[WARPS][2][D_MAX];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t bh, key = warp_row(&bh, a.t);
    const dt_philox_key drawn = dt_philox_now(&a.key);
    float dk[LANE_COLS] = {}, dv[LANE_COLS] = {};

    if (key >= a.t)
        return;
    keep_row(rows[warp][0], row_of<T>(a, a.qkv, bh, key, 1), a.d, lane);
    keep_row(rows[warp][1], row_of<T>(a, a.qkv, bh, key, 2), a.d, lane);
    for (int64_t first = a.causal ? key : 0; first < a.t; first += 32) {
        int64_t query = first + lane;
        float ds = 0.0f, weight = 0.0f;

        if (query < a.t)
            ds = score_gradient<T>(&weight, a, drawn, bh, query, key, rows[warp][0],
                                   row_of<T>(a, a.qkv, bh, query, 0), rows[warp][1],
                                   out_row<T>(a, a.dout, bh, query));
        add_rows(dk, ds, row_of<T>(a, a.qkv, bh, first, 0), 3 * a.c, a.t - first, a.d, lane);
        add_rows(dv, weight, out_row<T>(a, a.dout, bh, first), a.c, a.t - first, a.d, lane);
    }
    write_row((T *)row_of<T>(a, a.dqkv, bh, key, 1), dk, a.scale, a.d, lane);
    write_row((T *)row_of<T>(a, a.dqkv, bh, key, 2), dv, 1.0f, a.d, lane);
}

static dt_status check(const dt_attention &a, dt_error *err)
{
    if (a.d > D_MAX)
        return DT_FAIL(
            err, DT_ERR_UNSUPPORTED,
            "attention: heads of %lld are wider than the %d that CUDA has code for: take "
            "more heads",
            (long long)a.d, D_MAX);
    return DT_OK;
}

static unsigned grid(const dt_attention &a, int64_t rows)
{
    return (unsigned)(dt_cuda_ceil(rows, WARPS) * a.batch * a.heads);
}

dt_status dt_attention_plain_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     dt_error *err)
{
    dt_status st = check(a, err);

    if (st != DT_OK)
        return st;
    DT_CUDA_DISPATCH(dtype, "attention", err, {
        DT_CUDA_LAUNCH((forward<T>), grid(a, a.queries), WARPS * 32, 0, state->stream, a);
    });
    return dt_cuda_launched("attention", err);
}

dt_status dt_attention_plain_backward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                      dt_error *err)
{
    dt_status st = check(a, err);

    if (st != DT_OK)
        return st;
    DT_CUDA_DISPATCH(dtype, "attention", err, {
        DT_CUDA_LAUNCH((backward_queries<T>), grid(a, a.t), WARPS * 32, 0, state->stream, a);
        DT_CUDA_LAUNCH((backward_keys<T>), grid(a, a.t), WARPS * 32, 0, state->stream, a);
    });
    return dt_cuda_launched("attention", err);
}
