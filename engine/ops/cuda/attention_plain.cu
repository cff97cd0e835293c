/* attention_plain: computes attention with one warp per row: of queries (forward, dq) or of keys (dk, dv).
 *
 * The warp processes 32 rows of the other operand at a time: each lane computes the products of one of them,
 * then every lane adds all 32 rows to the columns that it holds. Sums are in fp32 and in a fixed order.
 */
#include "engine/ops/cuda/attention_int.cuh"

#define WARPS     4 /* warps per block */
#define D_MAX     256
#define LANE_COLS (D_MAX / 32)
#define FULL      0xffffffffu

/* Returns this warp's row, and its head in *head; each head has `rows` rows. */
__device__ inline int64_t warp_row(int64_t *head, int64_t rows)
{
    int64_t blocks = (rows + WARPS - 1) / WARPS;

    *head = blockIdx.x / blocks;
    return blockIdx.x % blocks * WARPS + threadIdx.x / 32;
}

template <typename T> __device__ inline float dot(const float *mine, const T *row, int64_t d)
{
    float sum = 0.0f;

    for (int64_t j = 0; j < d; j++)
        sum += mine[j] * dt_to_float(row[j]);
    return sum;
}

/* Copies a row into the warp's part of shared memory. */
template <typename T>
__device__ inline void keep_row(float *mine, const T *row, int64_t d, int lane)
{
    for (int64_t j = lane; j < d; j += 32)
        mine[j] = dt_to_float(row[j]);
    __syncwarp();
}

/* Adds 32 rows from `first` on, each multiplied with the factor of one lane, to sum; rows from
 * `end` on are left out. sum holds the columns lane, lane + 32, ... */
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

__device__ inline int64_t last_key(const dt_attention &a, int64_t bh, int64_t query)
{
    return a.mask == DT_MASK_LENGTHS ? a.lengths[bh / a.heads] - 1
                                     : dt_attention_last_key(a, query);
}

template <typename T> __global__ void forward(dt_attention a)
{
    __shared__ float rows[WARPS][D_MAX];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t bh, query = warp_row(&bh, a.queries), last;
    const dt_philox_key drawn = dt_philox_now(&a.key);
    float sum[LANE_COLS] = {}, max = -INFINITY, total = 0.0f;

    if (query >= a.queries)
        return;
    last = last_key(a, bh, query);
    keep_row(rows[warp], dt_attention_query_row<T>(a, a.q, bh, query), a.d, lane);
    for (int64_t first = dt_attention_first_key(a, bh, query); first <= last; first += 32) {
        int64_t key = first + lane, count = last + 1 - first;
        float score = -INFINITY, top, weight;

        if (key <= last)
            score = a.scale * dot(rows[warp], dt_attention_key_row<T>(a, a.k, bh, key), a.d);
        top = fmaxf(max, dt_warp_max(score));
        weight = expf(score - top); /* 0 after the last key */
        total = total * expf(max - top) + dt_warp_sum(weight);
#pragma unroll
        for (int i = 0; i < LANE_COLS; i++)
            sum[i] *= expf(max - top);
        max = top;
        if (a.p > 0.0f && key <= last)
            weight *= dt_attention_mask(a, drawn, bh, query, key);
        add_rows(sum, weight, dt_attention_key_row<T>(a, a.v, bh, first), a.v.row, count, a.d,
                 lane);
    }
    write_row(dt_attention_out_row<T>(a, a.out_written, bh, query), sum, 1.0f / total, a.d, lane);
    if (lane == 0)
        a.lse[bh * a.queries + query] = max + logf(total);
}

/* Returns dS of (query, key): P (mask dP - delta); *weight = mask P. Either the rows of the query
 * or those of the key are in shared memory. */
template <typename T>
__device__ inline float score_gradient(float *weight, const dt_attention &a,
                                       const dt_philox_key &drawn, int64_t bh, int64_t query,
                                       int64_t key, const float *q_or_k, const T *k_or_q,
                                       const float *dout_or_v, const T *v_or_dout)
{
    float probability = expf(a.scale * dot(q_or_k, k_or_q, a.d) - a.lse[bh * a.queries + query]);
    float mask = a.p > 0.0f ? dt_attention_mask(a, drawn, bh, query, key) : 1.0f;

    *weight = probability * mask;
    return probability * (mask * dot(dout_or_v, v_or_dout, a.d) - a.delta[bh * a.queries + query]);
}

template <typename T> __global__ void backward_queries(dt_attention a)
{
    __shared__ float rows[WARPS][2][D_MAX];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t bh, query = warp_row(&bh, a.queries), last;
    const dt_philox_key drawn = dt_philox_now(&a.key);
    float sum[LANE_COLS] = {};

    if (query >= a.queries)
        return;
    last = last_key(a, bh, query);
    keep_row(rows[warp][0], dt_attention_query_row<T>(a, a.q, bh, query), a.d, lane);
    keep_row(rows[warp][1], dt_attention_out_row<T>(a, a.dout, bh, query), a.d, lane);
    for (int64_t first = dt_attention_first_key(a, bh, query); first <= last; first += 32) {
        int64_t key = first + lane;
        float ds = 0.0f, weight;

        if (key <= last)
            ds = score_gradient<T>(&weight, a, drawn, bh, query, key, rows[warp][0],
                                   dt_attention_key_row<T>(a, a.k, bh, key), rows[warp][1],
                                   dt_attention_key_row<T>(a, a.v, bh, key));
        add_rows(sum, ds, dt_attention_key_row<T>(a, a.k, bh, first), a.k.row, last + 1 - first,
                 a.d, lane);
    }
    write_row(dt_attention_query_row<T>(a, a.dq, bh, query), sum, a.scale, a.d, lane);
}

/* Returns whether a query sees a key that is not after it. */
__device__ inline bool sees(const dt_attention &a, int64_t bh, int64_t query, int64_t key)
{
    return a.mask == DT_MASK_LENGTHS ? key < a.lengths[bh / a.heads]
                                     : dt_attention_first_key(a, bh, query) <= key;
}

/* Returns the first query that may see a key. The queries after it also see the key, up to the end
 * of the key's segment. */
__device__ inline int64_t first_query(const dt_attention &a, int64_t key)
{
    int64_t query = key - (a.keys - a.queries);

    return a.mask == DT_MASK_FULL || a.mask == DT_MASK_LENGTHS || query < 0 ? 0 : query;
}

template <typename T> __global__ void backward_keys(dt_attention a)
{
    __shared__ float rows[WARPS][2][D_MAX];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t bg, key = warp_row(&bg, a.keys), head = dt_attention_head_of(a, bg);
    const dt_philox_key drawn = dt_philox_now(&a.key);
    float dk[LANE_COLS] = {}, dv[LANE_COLS] = {};

    if (key >= a.keys)
        return;
    keep_row(rows[warp][0], dt_attention_key_row<T>(a, a.k, head, key), a.d, lane);
    keep_row(rows[warp][1], dt_attention_key_row<T>(a, a.v, head, key), a.d, lane);
    for (int64_t bh = head; bh < head + a.group; bh++)
        for (int64_t first = first_query(a, key); first < a.queries && sees(a, bh, first, key);
             first += 32) {
            int64_t query = first + lane;
            float ds = 0.0f, weight = 0.0f;

            if (query < a.queries && sees(a, bh, query, key))
                ds = score_gradient<T>(&weight, a, drawn, bh, query, key, rows[warp][0],
                                       dt_attention_query_row<T>(a, a.q, bh, query), rows[warp][1],
                                       dt_attention_out_row<T>(a, a.dout, bh, query));
            add_rows(dk, ds, dt_attention_query_row<T>(a, a.q, bh, first), a.q.row,
                     a.queries - first, a.d, lane);
            add_rows(dv, weight, dt_attention_out_row<T>(a, a.dout, bh, first), a.heads * a.d,
                     a.queries - first, a.d, lane);
        }
    write_row(dt_attention_key_row<T>(a, a.dk, head, key), dk, a.scale, a.d, lane);
    write_row(dt_attention_key_row<T>(a, a.dv, head, key), dv, 1.0f, a.d, lane);
}

static dt_status check(const dt_attention &a, dt_error *err)
{
    if (a.d > D_MAX)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "attention: heads of %lld are wider than the %d that the CUDA kernel "
                       "supports: use more heads",
                       (long long)a.d, D_MAX);
    return DT_OK;
}

static unsigned grid(const dt_attention &a, int64_t rows, int64_t heads)
{
    return (unsigned)(dt_cuda_ceil(rows, WARPS) * a.batch * heads);
}

dt_status dt_attention_plain_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     dt_error *err)
{
    dt_status st = check(a, err);

    if (st != DT_OK)
        return st;
    DT_CUDA_DISPATCH(dtype, "attention", err, {
        DT_CUDA_LAUNCH((forward<T>), grid(a, a.queries, a.heads), WARPS * 32, 0, state->stream, a);
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
        DT_CUDA_LAUNCH((backward_queries<T>), grid(a, a.queries, a.heads), WARPS * 32, 0,
                       state->stream, a);
        DT_CUDA_LAUNCH((backward_keys<T>), grid(a, a.keys, a.groups), WARPS * 32, 0, state->stream,
                       a);
    });
    return dt_cuda_launched("attention", err);
}
