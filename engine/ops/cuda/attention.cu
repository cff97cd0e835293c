/* attention: chooses the kernel for each call, and has the one for any type, mask and size. */
#include <math.h>

#include "engine/ops/cuda/attention_int.cuh"
#include "engine/ops/cuda/columns.cuh"

/* attention_plain: computes attention with one warp per row: of queries (forward, dq) or of keys (dk, dv).
 *
 * The warp processes 32 rows of the other operand at a time: each lane computes the products of one of them,
 * then every lane adds all 32 rows to the columns that it holds. Sums are in fp32 and in a fixed order.
 */

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

/* Returns the score of an unscaled product; *slope: that of the cap. */
__device__ inline float score_of(float *slope, const dt_attention &a, float product)
{
    float score = a.scale * product, t;

    *slope = 1.0f;
    if (a.softcap == 0.0f)
        return score;
    t = score / a.softcap;
    *slope = 4.0f / ((1.0f + expf(-2.0f * t)) * (1.0f + expf(2.0f * t)));
    return a.softcap * tanhf(t);
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
        float score = -INFINITY, top, weight, slope;

        if (key <= last)
            score =
                score_of(&slope, a, dot(rows[warp], dt_attention_key_row<T>(a, a.k, bh, key), a.d));
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
    float slope, score = score_of(&slope, a, dot(q_or_k, k_or_q, a.d));
    float probability = expf(score - a.lse[bh * a.queries + query]);
    float mask = a.p > 0.0f ? dt_attention_mask(a, drawn, bh, query, key) : 1.0f;

    *weight = probability * mask;
    return slope * probability *
           (mask * dot(dout_or_v, v_or_dout, a.d) - a.delta[bh * a.queries + query]);
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
    return dt_attention_first_key(a, bh, query) <= key &&
           (a.mask != DT_MASK_LENGTHS || key < a.lengths[bh / a.heads]);
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

/* delta[b,h,q] = sum over d of dout * out.
 *
 * LANES neighbouring threads sum a (row, head): 16 bytes a thread, or one element if the rows are not
 * aligned. Heads of 64 in 16 bits take 8 threads, so that a warp reads four of them at once.
 * Bytes: both tensors once. */
template <typename T, int LANES, bool WHOLE>
__global__ void row_products(float *delta, const T *dout, const T *out, int64_t batch,
                             int64_t queries, int64_t heads, int64_t d)
{
    constexpr int N = WHOLE ? dt_vec<T>::N : 1;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    int lane = (int)threadIdx.x % LANES;
    int64_t row = i / heads, head = i % heads;
    bool exists = row < batch * queries; /* all threads of a warp take part in its sums */
    float sum = 0.0f;

    for (int64_t j = i * d + lane * N; exists && j < (i + 1) * d; j += LANES * N)
        if (WHOLE) {
            dt_vec<T> x = *(const dt_vec<T> *)(dout + j), y = *(const dt_vec<T> *)(out + j);

#pragma unroll
            for (int k = 0; k < N; k++)
                sum += dt_to_float(x.v[k]) * dt_to_float(y.v[k]);
        } else {
            sum += dt_to_float(dout[j]) * dt_to_float(out[j]);
        }
#pragma unroll
    for (int step = LANES / 2; step > 0; step >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (exists && lane == 0)
        delta[(row / queries * heads + head) * queries + row % queries] = sum;
}

template <typename T, int LANES, bool WHOLE>
static void launch_row_products(dt_cuda_state *state, const dt_attention &a, float *delta)
{
    int64_t rows = a.batch * a.queries * a.heads;

    DT_CUDA_LAUNCH((row_products<T, LANES, WHOLE>),
                   (unsigned)dt_cuda_ceil(rows * LANES, DT_CUDA_BLOCK), DT_CUDA_BLOCK, 0,
                   state->stream, delta, (const T *)a.dout, (const T *)a.out, a.batch, a.queries,
                   a.heads, a.d);
}

static dt_status sum_rows(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype, float *delta,
                          dt_error *err)
{
    DT_CUDA_DISPATCH(dtype, "attention", err, {
        bool whole = dt_cuda_aligned<T>(a.dout, a.d) && dt_cuda_aligned<T>(a.out, a.d);

        if (!whole)
            launch_row_products<T, 32, false>(state, a, delta);
        else if (a.d <= 8 * dt_vec<T>::N)
            launch_row_products<T, 8, true>(state, a, delta);
        else if (a.d <= 16 * dt_vec<T>::N)
            launch_row_products<T, 16, true>(state, a, delta);
        else
            launch_row_products<T, 32, true>(state, a, delta);
    });
    return dt_cuda_launched("attention", err);
}

static bool fits(const dt_heads *x, const dt_heads *like)
{
    return x->batch == like->batch && x->rows == like->rows && x->heads == like->heads &&
           x->width == like->width && x->dtype == like->dtype;
}

static dt_attention_rows rows_of(const dt_heads *x)
{
    return {x->data, x->row_stride, x->sequence_stride};
}

static dt_attention describe(const dt_qkv *x, const dt_tensor *lse, const dt_attention_args *args)
{
    dt_attention a = {};
    double p = args->p;

    a.batch = x->q.batch;
    a.queries = x->q.rows;
    a.keys = x->k.rows;
    a.heads = x->q.heads;
    a.first_head = args->first_head;
    a.all_heads = args->heads > 0 ? args->heads : a.heads;
    a.groups = x->k.heads;
    a.group = a.heads / a.groups;
    a.d = x->q.width;
    a.q = rows_of(&x->q);
    a.k = rows_of(&x->k);
    a.v = rows_of(&x->v);
    a.mask = args->mask;
    a.starts = (const int32_t *)args->segment_starts.data;
    a.lengths = (const int32_t *)args->key_lengths.data;
    a.lse = (float *)lse->data;
    a.window = args->window;
    a.scale = (float)(args->scale > 0 ? args->scale : 1.0 / sqrt((double)a.d));
    a.softcap = (float)args->softcap;
    a.p = (float)p;
    a.keep = (float)(1.0 / (1.0 - p));
    if (args->key != NULL)
        a.key = *args->key;
    DT_ASSERT(fits(&x->v, &x->k) && x->k.batch == a.batch && x->k.width == a.d &&
              x->k.dtype == x->q.dtype && a.group * a.groups == a.heads);
    DT_ASSERT(a.mask == DT_MASK_FULL || a.mask == DT_MASK_LENGTHS || a.queries <= a.keys);
    DT_ASSERT(a.mask != DT_MASK_LENGTHS || (args->key_lengths.dtype == DT_I32 &&
                                            dt_tensor_elems(&args->key_lengths) == a.batch));
    DT_ASSERT(a.mask != DT_MASK_SEGMENTS ||
              (args->segment_starts.dtype == DT_I32 &&
               dt_tensor_elems(&args->segment_starts) == a.batch * a.keys));
    DT_ASSERT(lse->dtype == DT_F32 && dt_tensor_elems(lse) == a.batch * a.heads * a.queries);
    DT_ASSERT(p >= 0 && p < 1 && (p == 0 || args->key != NULL));
    return a;
}

dt_status dt_cuda_attention_forward(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                    const dt_qkv *x, const dt_attention_args *args, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_attention a = describe(x, lse, args);
    dt_status st = DT_OK;
    bool done = false;

    DT_ASSERT(out->ndim == 3 && dt_tensor_elems(out) == a.batch * a.queries * a.heads * a.d);
    a.out_written = out->data;
    if (a.batch * a.queries == 0)
        return DT_OK;
    DT_TRY(dt_attention_cudnn_forward(device, a, x->q.dtype, &done, err));
    if (done)
        return DT_OK;
    if (dt_attention_flash_has(a, x->q.dtype))
        return dt_attention_own_forward(device, a, x->q.dtype, err);
    return dt_attention_plain_forward(state, a, x->q.dtype, err);
out:
    return st;
}

/* Flash backward; with dbias also the sums of all rows' gradients, from those that each block leaves in scratch. */
static dt_status flash_backward(dt_device *device, dt_attention a, float *dbias, dt_dtype dtype,
                                dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t q = a.heads * a.d, k = a.groups * a.d, rows = a.batch * a.queries * a.heads;
    int64_t q_tiles = a.batch * dt_attention_flash_tiles(a.queries);
    int64_t k_tiles = a.batch * dt_attention_flash_tiles(a.keys);
    int64_t sums = dbias != NULL ? q_tiles * q + k_tiles * 2 * k : 0;
    dt_status st = DT_OK;
    void *scratch;

    DT_TRY(dt_cuda_scratch(&scratch, device, (size_t)(rows + sums) * sizeof(float), err));
    a.delta = (const float *)scratch;
    if (dbias != NULL) {
        a.dq_sums = (float *)scratch + rows;
        a.dk_sums = a.dq_sums + q_tiles * q;
    }
    DT_TRY(sum_rows(state, a, dtype, (float *)scratch, err));
    DT_TRY(dt_attention_flash_backward(state, a, dtype, err));
    if (dbias == NULL)
        return DT_OK;
    DT_TRY(dt_columns_add(state, {{dbias}}, a.dq_sums, (unsigned)q_tiles, q, q, "attention", err));
    DT_TRY(dt_columns_add(state, {{dbias + q, dbias + q + k}}, a.dk_sums, (unsigned)k_tiles, k,
                          2 * k, "attention", err));
out:
    return st;
}

/* The kernel with one warp a row; with dbias, the gradients are read once more. */
static dt_status plain_backward(dt_device *device, dt_attention a, float *dbias, dt_dtype dtype,
                                dt_error *err)
{
    const dt_attention_rows *written[] = {&a.dq, &a.dk, &a.dv};
    dt_status st = DT_OK;
    void *scratch;

    DT_TRY(dt_cuda_scratch(&scratch, device,
                           (size_t)(a.batch * a.queries * a.heads) * sizeof(float), err));
    a.delta = (const float *)scratch;
    DT_TRY(sum_rows(dt_cuda_of(device), a, dtype, (float *)scratch, err));
    DT_TRY(dt_attention_plain_backward(dt_cuda_of(device), a, dtype, err));
    for (int i = 0; i < 3 && dbias != NULL; i++) {
        const dt_columns_rows rows = {written[i]->data,
                                      a.batch,
                                      i == 0 ? a.queries : a.keys,
                                      written[i]->row,
                                      written[i]->sequence,
                                      (i == 0 ? a.heads : a.groups) * a.d};

        DT_TRY(dt_columns_sum(device, dbias, rows, dtype, "attention", err));
        dbias += rows.columns;
    }
out:
    return st;
}

/* dbias: NULL, or as attention_backward_bias has it. */
static dt_status backward(dt_device *device, const dt_qkv *dx, float *dbias, const dt_tensor *dout,
                          const dt_qkv *x, const dt_tensor *out, const dt_tensor *lse,
                          const dt_attention_args *args, dt_error *err)
{
    dt_attention a = describe(x, lse, args);

    DT_ASSERT(fits(&dx->q, &x->q) && fits(&dx->k, &x->k) && fits(&dx->v, &x->v));
    a.out = out->data;
    a.dout = dout->data;
    a.dq = rows_of(&dx->q);
    a.dk = rows_of(&dx->k);
    a.dv = rows_of(&dx->v);
    if (a.batch * a.queries * a.heads == 0)
        return DT_OK;
    return (dt_attention_flash_has(a, x->q.dtype) ? flash_backward : plain_backward)(
        device, a, dbias, x->q.dtype, err);
}

dt_status dt_cuda_attention_backward(dt_device *device, const dt_qkv *dx, const dt_tensor *dout,
                                     const dt_qkv *x, const dt_tensor *out, const dt_tensor *lse,
                                     const dt_attention_args *args, dt_error *err)
{
    return backward(device, dx, NULL, dout, x, out, lse, args, err);
}

dt_status dt_cuda_attention_backward_bias(dt_device *device, const dt_qkv *dx, dt_tensor *dbias,
                                          const dt_tensor *dout, const dt_qkv *x,
                                          const dt_tensor *out, const dt_tensor *lse,
                                          const dt_attention_args *args, dt_error *err)
{
    DT_ASSERT(dbias->dtype == DT_F32 &&
              dt_tensor_elems(dbias) == (x->q.heads + 2 * x->k.heads) * x->q.width);
    return backward(device, dx, (float *)dbias->data, dout, x, out, lse, args, err);
}
