/* loss: cross entropy of logits, and the squared error of numbers. */
#include <limits.h>

#include "engine/ops/cuda/cuda_int.cuh"
#include "engine/ops/cuda/ptx.cuh"

/* cross_entropy: computes the loss of each row of logits; backward replaces the logits by their gradient.
 *
 * A block computes a row. The row is read once for the maximum and the sum of exponentials together: each thread
 * keeps both, and rescales its sum when its maximum grows (Milakov and Gimelshein 2018). Backward needs the row
 * again for the gradient.
 * Kept         if two rows fit on a multiprocessor (50,304 bf16 logits do on sm_90), two blocks stay on each. A thread
 *              copies its own vectors of a row to shared memory. It replaces each by that of its block's next row
 *              (cp.async) as soon as the gradient is computed, so that copies are always under way, and memory is
 *              read once
 * Twice        otherwise backward reads the row again from global memory, and the second-level cache may miss: the
 *              rows of all running blocks are as large as that cache. Both ways give the same bits
 * Errors       a target outside the vocabulary has loss 0; it is recorded on the device and reported by
 *              synchronize()
 * Bytes        for V logits of bf16: forward reads 2 V per row; backward reads and writes 2 V, or reads them twice
 */

#define THREADS 512
#define AHEAD \
    4 /* vectors that a thread loads before it uses the first: hides the latency of memory */
#define COLUMNS_MOST  (1 << 30) /* columns are counted in 32 bits */
#define PARTS         4    /* of a thread's vectors of a kept row: each is waited for by itself */
#define SHARED_BESIDE 1536 /* bytes of shared memory per block for the driver and for the sums */

/* Adds a vector to a thread's maximum and sum. */
template <typename T> __device__ void add_vector(float *max, float *sum, const dt_vec<T> &x)
{
    float top = *max;

#pragma unroll
    for (int k = 0; k < dt_vec<T>::N; k++)
        top = fmaxf(top, dt_to_float(x.v[k]));
    if (top > *max) {
        *sum *= __expf(*max - top);
        *max = top;
    }
    if (*max > -INFINITY)
#pragma unroll
        for (int k = 0; k < dt_vec<T>::N; k++)
            *sum += __expf(dt_to_float(x.v[k]) - *max);
}

/* Sets the elements from `count` on to minus infinity, whose exponential is 0. */
template <typename T> __device__ void cut_vector(dt_vec<T> *x, int count)
{
    if (count < dt_vec<T>::N)
#pragma unroll
        for (int k = 0; k < dt_vec<T>::N; k++)
            if (k >= count)
                x->v[k] = dt_from_float<T>(-INFINITY);
}

/* A maximum, and a sum of exp(x - maximum). */
struct statistics {
    float max, sum;
};

__device__ inline statistics join_warp(statistics own)
{
    float max = dt_warp_max(own.max);

    return {max, dt_warp_sum(own.max > -INFINITY ? own.sum * __expf(own.max - max) : 0.0f)};
}

/* Returns the statistics of the block's threads together. `shared` holds 32, and may be used again after another
 * barrier. */
__device__ inline statistics join_block(statistics own, statistics *shared)
{
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, warps = (int)blockDim.x / 32;

    own = join_warp(own);
    if (lane == 0)
        shared[warp] = own;
    __syncthreads();
    return join_warp(lane < warps ? shared[lane] : statistics{-INFINITY, 0.0f});
}

/* Returns the statistics of the first `columns` of a row. */
template <typename T>
__device__ statistics row_statistics(const T *row, int64_t columns, bool aligned,
                                     statistics *shared)
{
    constexpr int N = dt_vec<T>::N;
    statistics own = {-INFINITY, 0.0f};
    int vocab = (int)columns, stride = (int)blockDim.x * N;

    for (int first = (int)threadIdx.x * N; aligned && first < vocab; first += AHEAD * stride) {
        dt_vec<T> x[AHEAD];

#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (first + i * stride < vocab)
                x[i] = *(const dt_vec<T> *)(row + first + i * stride);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (first + i * stride < vocab) {
                cut_vector(&x[i], vocab - first - i * stride);
                add_vector(&own.max, &own.sum, x[i]);
            }
    }
    for (int j = (int)threadIdx.x; !aligned && j < vocab; j += (int)blockDim.x) {
        float x = dt_to_float(row[j]);

        if (x > own.max) {
            own.sum *= __expf(own.max - x);
            own.max = x;
        }
        if (own.max > -INFINITY)
            own.sum += __expf(x - own.max);
    }
    return join_block(own, shared);
}

/* Returns the sum of x - max over the part of a vector that is in the vocabulary. */
template <typename T> __device__ float sum_vector(const dt_vec<T> &x, int64_t count, float max)
{
    float sum = 0.0f;

#pragma unroll
    for (int k = 0; k < dt_vec<T>::N; k++)
        if (k < count)
            sum += dt_to_float(x.v[k]) - max;
    return sum;
}

/* Returns the sum of x - max over the block. Only label smoothing needs it; it reads the row once
 * more. */
template <typename T>
__device__ float row_sum(const T *row, int64_t vocab, float max, bool aligned, float *shared)
{
    constexpr int N = dt_vec<T>::N;
    float sum = 0.0f;

    for (int64_t j = (int64_t)threadIdx.x * N; aligned && j < vocab; j += (int64_t)blockDim.x * N)
        sum += sum_vector(*(const dt_vec<T> *)(row + j), vocab - j, max);
    for (int64_t j = threadIdx.x; !aligned && j < vocab; j += blockDim.x)
        sum += dt_to_float(row[j]) - max;
    return dt_block_sum(sum, shared);
}

/* The arguments of a call. */
template <typename T> struct entropy_call {
    float *losses;
    T *logits;
    const int32_t *targets;
    const float *weights;
    int64_t n, vocab, padded;
    const double *scale;
    float smoothing;
    int *fault;
};

/* What the gradient of a row depends on. */
struct row_slope {
    float max, factor, even, hit; /* hit: subtracted at the target */
    float weight, scale;
    int32_t target;
    bool counts;
};

/* Returns what is known of a row before its statistics. */
template <typename T> __device__ row_slope begin_row(const entropy_call<T> &call, int64_t row)
{
    row_slope r = {};

    r.target = call.targets[row];
    r.counts = r.target >= 0 && r.target < call.vocab;
    r.weight = call.weights != NULL ? call.weights[row] : 1.0f;
    r.scale = call.scale != NULL ? (float)(*call.scale * (double)r.weight) : 0.0f;
    if (threadIdx.x == 0 && r.target >= call.vocab)
        atomicMax(call.fault, r.target < INT_MAX ? r.target + 1 : r.target);
    return r;
}

/* Writes the loss of a row; `at` is the target's logit, `mean` that of all logits minus the maximum. */
template <typename T>
__device__ void write_loss(const entropy_call<T> &call, int64_t row, const row_slope &r,
                           statistics all, float at, float mean)
{
    call.losses[row] = r.counts
                           ? r.weight * (logf(all.sum) + (1.0f - call.smoothing) * (all.max - at) -
                                         call.smoothing * mean)
                           : 0.0f;
}

template <typename T>
__device__ void prepare_slope(row_slope *r, const entropy_call<T> &call, statistics all)
{
    r->max = all.max;
    r->even = r->scale * call.smoothing / (float)call.vocab;
    r->factor = r->counts ? r->scale / all.sum : 0.0f;
    r->hit = r->scale * (1.0f - call.smoothing);
}

/* Returns the gradient of the logits from column `first` on; `left` columns are left in the vocabulary. */
template <typename T>
__device__ dt_vec<T> slope_of(const dt_vec<T> &in, int64_t first, int64_t left, const row_slope &r)
{
    constexpr int N = dt_vec<T>::N;
    int64_t at = r.target - first;
    dt_vec<T> out;
    float g[N];

#pragma unroll
    for (int k = 0; k < N; k++)
        g[k] = __expf(dt_to_float(in.v[k]) - r.max) * r.factor - r.even;
    if (at >= 0 && at < N)
#pragma unroll
        for (int k = 0; k < N; k++)
            g[k] -= k == at ? r.hit : 0.0f;
    if (left < N || !r.counts)
#pragma unroll
        for (int k = 0; k < N; k++)
            if (k >= left || !r.counts)
                g[k] = 0.0f;
#pragma unroll
    for (int k = 0; k < N; k++)
        out.v[k] = dt_from_float<T>(g[k]);
    return out;
}

template <typename T, bool BACKWARD>
__global__ void __launch_bounds__(THREADS, 2) rows(entropy_call<T> call, bool aligned)
{
    constexpr int N = dt_vec<T>::N;
    __shared__ statistics joined[32];
    __shared__ float shared[32];
    int64_t row = blockIdx.x, padded = call.padded;
    row_slope r = begin_row(call, row);
    T *x = call.logits + row * padded;
    float mean = 0.0f;
    statistics all = row_statistics(x, call.vocab, aligned, joined);

    if (call.smoothing > 0.0f)
        mean = row_sum(x, call.vocab, all.max, aligned, shared) / (float)call.vocab;
    if (threadIdx.x == 0)
        write_loss(call, row, r, all, r.counts ? dt_to_float(x[r.target]) : 0.0f, mean);
    if (!BACKWARD)
        return;
    __syncthreads(); /* after all threads have read the target's logit, which is overwritten below */
    prepare_slope(&r, call, all);
    for (int64_t j = (int64_t)threadIdx.x * N; j < padded; j += (int64_t)blockDim.x * N) {
        bool whole = aligned && j + N <= padded;
        dt_vec<T> in, out;

        if (whole)
            in = *(const dt_vec<T> *)(x + j);
        else
            for (int k = 0; k < N; k++)
                in.v[k] = x[j + k < padded ? j + k : j];
        out = slope_of(in, j, call.vocab - j, r);
        if (whole)
            *(dt_vec<T> *)(x + j) = out;
        else
            for (int k = 0; k < N && j + k < padded; k++)
                x[j + k] = out.v[k];
    }
}

/* --- backward with rows in shared memory */

/* The vectors of a thread in a row: those from threadIdx.x on, every THREADS-th, in PARTS parts of `each`. */
struct own_vectors {
    int count, each; /* vectors of the row; of a part */
};

/* Queues the copy of a vector; nothing after the last row. */
template <typename T>
__device__ inline void copy_ahead(dt_vec<T> *kept, const entropy_call<T> &call, int64_t row, int i)
{
    if (row < call.n)
        dt_ptx_copy_16(dt_shared_at(kept + i),
                       call.logits + row * call.padded + (int64_t)i * dt_vec<T>::N, true);
}

/* Runs f(i) for each vector of a thread in one part. */
template <typename F> __device__ inline void each_of_part(const own_vectors &own, int part, F f)
{
    int end = (part + 1) * own.each * THREADS;

    end = end < own.count ? end : own.count;
    for (int i = part * own.each * THREADS + (int)threadIdx.x; i < end; i += THREADS)
        f(i);
}

/* Waits until the copies of a part have arrived; those of later parts may be under way. */
__device__ inline void wait_for_part(int part)
{
    static_assert(PARTS == 4, "one case for each part");
    switch (part) {
    case 0:
        dt_tile_wait<3>();
        break;
    case 1:
        dt_tile_wait<2>();
        break;
    case 2:
        dt_tile_wait<1>();
        break;
    default:
        dt_tile_wait<0>();
    }
}

/* A thread reads only vectors that it has copied itself, so that it waits only for its own copies. Rows must be whole,
 * aligned vectors. */
template <typename T> __global__ void __launch_bounds__(THREADS, 2) kept_rows(entropy_call<T> call)
{
    DT_CUDA_DYNAMIC_SHARED(memory); /* a row */
    constexpr int N = dt_vec<T>::N;
    __shared__ statistics joined[2][32]; /* rows take turns: one barrier a row is enough */
    __shared__ float shared[32];
    dt_vec<T> *kept = (dt_vec<T> *)memory;
    int count = (int)(call.padded / N), vocab = (int)call.vocab, turn = 0;
    own_vectors own = {count, (count + PARTS * THREADS - 1) / (PARTS * THREADS)};

#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        each_of_part(own, part, [&](int i) { copy_ahead(kept, call, blockIdx.x, i); });
        dt_tile_commit();
    }
    for (int64_t row = blockIdx.x; row < call.n; row += gridDim.x, turn = 1 - turn) {
        row_slope r = begin_row(call, row);
        statistics all = {-INFINITY, 0.0f};
        float mean = 0.0f;

#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            wait_for_part(part);
            each_of_part(own, part, [&](int i) {
                dt_vec<T> x = kept[i];

                cut_vector(&x, vocab - i * N);
                add_vector(&all.max, &all.sum, x);
            });
        }
        all = join_block(all, joined[turn]);
        if (call.smoothing > 0.0f) {
            float sum = 0.0f;

            for (int i = (int)threadIdx.x; i * N < vocab; i += THREADS)
                sum += sum_vector(kept[i], vocab - i * N, all.max);
            mean = dt_block_sum(sum, shared) / (float)vocab;
        }
        /* the thread that has the target's logit writes the loss */
        if ((int)threadIdx.x == (r.counts ? r.target / N % THREADS : 0))
            write_loss(call, row, r, all,
                       r.counts ? dt_to_float(((const T *)memory)[r.target]) : 0.0f, mean);
        prepare_slope(&r, call, all);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            each_of_part(own, part, [&](int i) {
                dt_vec<T> out = slope_of(kept[i], i * N, vocab - i * N, r);

                *(dt_vec<T> *)(call.logits + row * call.padded + (int64_t)i * N) = out;
                copy_ahead(kept, call, row + gridDim.x, i);
            });
            dt_tile_commit();
        }
    }
    dt_tile_wait<0>();
}

/* Computes backward with rows in shared memory. Sets *done to false if two rows
 * do not fit the shared memory of a multiprocessor. */
template <typename T>
static dt_status run_kept(dt_cuda_state *state, const entropy_call<T> &call, bool *done,
                          dt_error *err)
{
    size_t bytes = (size_t)call.padded * sizeof(T);
    int64_t blocks = (int64_t)state->processors * 2;
    dt_status st = DT_OK;

    *done = 2 * (bytes + SHARED_BESIDE) <= (size_t)state->shared_bytes;
    if (!*done)
        return DT_OK;
    DT_TRY(
        dt_cuda_check(cudaFuncSetAttribute((const void *)kept_rows<T>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
                      "cross entropy", err));
    DT_CUDA_LAUNCH((kept_rows<T>), (unsigned)(call.n < blocks ? call.n : blocks), THREADS, bytes,
                   state->stream, call);
out:
    return st;
}

/* Weights of n rows in device memory; NULL: none. */
static const float *weights_of(const dt_tensor *weights, int64_t n)
{
    DT_ASSERT(weights == NULL || (weights->dtype == DT_F32 && dt_tensor_elems(weights) == n));
    return weights != NULL ? (const float *)weights->data : NULL;
}

template <bool BACKWARD>
static dt_status run_cross_entropy(dt_device *device, dt_tensor *losses, const dt_tensor *logits,
                                   const dt_tensor *targets, const dt_tensor *weights,
                                   int64_t vocab, const double *scale, double smoothing,
                                   dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = dt_tensor_rows(logits), padded = dt_tensor_cols(logits);
    const float *each = weights_of(weights, n);
    dt_status st = DT_OK;

    DT_ASSERT(losses->dtype == DT_F32 && targets->dtype == DT_I32 && dt_tensor_elems(losses) == n &&
              dt_tensor_elems(targets) == n && vocab >= 1 && vocab <= padded &&
              padded <= COLUMNS_MOST);
    if (n == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(logits->dtype, "cross entropy", err, {
        const entropy_call<T> call = {(float *)losses->data,
                                      (T *)logits->data,
                                      (const int32_t *)targets->data,
                                      each,
                                      n,
                                      vocab,
                                      padded,
                                      scale,
                                      (float)smoothing,
                                      state->fault};
        bool aligned = dt_cuda_aligned<T>(logits->data, padded), done = false;

        if (BACKWARD && aligned)
            DT_TRY(run_kept(state, call, &done, err));
        if (!done)
            DT_CUDA_LAUNCH((rows<T, BACKWARD>), (unsigned)n, THREADS, 0, state->stream, call,
                           aligned);
    });
    DT_TRY(dt_cuda_launched("cross entropy", err));
out:
    return st;
}

dt_status dt_cuda_cross_entropy_forward(dt_device *device, dt_tensor *losses,
                                        const dt_tensor *logits, const dt_tensor *targets,
                                        const dt_tensor *weights, int64_t vocab, dt_error *err)
{
    return run_cross_entropy<false>(device, losses, logits, targets, weights, vocab, NULL, 0.0,
                                    err);
}

dt_status dt_cuda_cross_entropy_backward(dt_device *device, dt_tensor *losses, dt_tensor *logits,
                                         const dt_tensor *targets, const dt_tensor *weights,
                                         int64_t vocab, const double *scale, double smoothing,
                                         dt_error *err)
{
    return run_cross_entropy<true>(device, losses, logits, targets, weights, vocab, scale,
                                   smoothing, err);
}

/* --- a vocabulary divided among ranks (ops.h) */

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
    part_rows(float *own, const T *logits, const int32_t *targets, dt_vocab_part part, int64_t n,
              int64_t padded, bool smooth, bool aligned, int *fault)
{
    __shared__ statistics joined[32];
    __shared__ float shared[32];
    int64_t row = blockIdx.x, column = targets[row] - part.first;
    const T *x = logits + row * padded;
    statistics all = row_statistics(x, part.count, aligned, joined);
    float mean = 0.0f;

    if (smooth)
        mean = row_sum(x, part.count, 0.0f, aligned, shared) / (float)part.all;
    if (threadIdx.x != 0)
        return;
    if (targets[row] >= part.all)
        atomicMax(fault, targets[row] < INT_MAX ? targets[row] + 1 : targets[row]);
    own[row] = all.max;
    own[n + row] = all.sum;
    own[2 * n + row] = column >= 0 && column < part.count ? dt_to_float(x[column]) : 0.0f;
    own[3 * n + row] = mean;
}

/* Every thread joins the numbers of the ranks by itself: there are few. */
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
    join_rows(float *losses, T *logits, const float *all, const int32_t *targets,
              const float *weights, dt_vocab_part part, int64_t ranks, int64_t n, int64_t padded,
              const double *scale_at, float smoothing)
{
    int64_t row = blockIdx.x, column = targets[row] - part.first;
    bool counts = targets[row] >= 0 && targets[row] < part.all;
    float max = -INFINITY, sum = 0.0f, aim = 0.0f, mean = 0.0f, scale, factor, even;
    float weight = weights != NULL ? weights[row] : 1.0f;
    T *x = logits + row * padded;

    for (int64_t r = 0; r < ranks; r++)
        max = fmaxf(max, all[DT_VOCAB_NUMBERS * n * r + row]);
    for (int64_t r = 0; r < ranks; r++) {
        const float *own = all + DT_VOCAB_NUMBERS * n * r;

        if (own[n + row] != 0.0f) /* also NaN */
            sum += own[n + row] * __expf(own[row] - max);
        aim += own[2 * n + row];
        mean += own[3 * n + row];
    }
    if (threadIdx.x == 0)
        losses[row] = counts ? weight * (logf(sum) + (1.0f - smoothing) * (max - aim) -
                                         (smoothing > 0.0f ? smoothing * (mean - max) : 0.0f))
                             : 0.0f;
    if (scale_at == NULL)
        return;
    scale = (float)(*scale_at * (double)weight);
    even = scale * smoothing / (float)part.all;
    factor = counts ? scale / sum : 0.0f;
    for (int64_t j = threadIdx.x; j < padded; j += blockDim.x) {
        float g = 0.0f;

        if (counts && j < part.count)
            g = __expf(dt_to_float(x[j]) - max) * factor - even -
                (j == column ? scale * (1.0f - smoothing) : 0.0f);
        x[j] = dt_from_float<T>(g);
    }
}

dt_status dt_cuda_cross_entropy_part(dt_device *device, dt_tensor *own, const dt_tensor *logits,
                                     const dt_tensor *targets, const dt_vocab_part *part,
                                     double smoothing, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = dt_tensor_rows(logits), padded = dt_tensor_cols(logits);

    DT_ASSERT(own->dtype == DT_F32 && targets->dtype == DT_I32 &&
              dt_tensor_elems(own) == DT_VOCAB_NUMBERS * n && dt_tensor_elems(targets) == n &&
              part->count >= 0 && part->count <= padded && padded <= COLUMNS_MOST);
    if (n == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(logits->dtype, "cross entropy", err, {
        DT_CUDA_LAUNCH((part_rows<T>), (unsigned)n, THREADS, 0, state->stream, (float *)own->data,
                       (const T *)logits->data, (const int32_t *)targets->data, *part, n, padded,
                       smoothing > 0, dt_cuda_aligned<T>(logits->data, padded), state->fault);
    });
    return dt_cuda_launched("cross entropy", err);
}

dt_status dt_cuda_cross_entropy_join(dt_device *device, dt_tensor *losses, dt_tensor *logits,
                                     const dt_tensor *all, const dt_tensor *targets,
                                     const dt_tensor *weights, const dt_vocab_part *part,
                                     const double *scale, double smoothing, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = dt_tensor_rows(logits), padded = dt_tensor_cols(logits);

    DT_ASSERT(all->dtype == DT_F32 && losses->dtype == DT_F32 && dt_tensor_elems(losses) == n &&
              (n == 0 || dt_tensor_elems(all) % (DT_VOCAB_NUMBERS * n) == 0));
    if (n == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(logits->dtype, "cross entropy", err, {
        DT_CUDA_LAUNCH((join_rows<T>), (unsigned)n, THREADS, 0, state->stream,
                       (float *)losses->data, (T *)logits->data, (const float *)all->data,
                       (const int32_t *)targets->data, weights_of(weights, n), *part,
                       dt_tensor_elems(all) / (DT_VOCAB_NUMBERS * n), n, padded, scale,
                       (float)smoothing);
    });
    return dt_cuda_launched("cross entropy", err);
}

/* squared_error: computes the loss of each row of outputs; backward replaces the outputs by their gradient.
 *
 * One thread per row: rows are short (the numbers that a model predicts) and many. Sums are in fp32, in the
 * order of the columns; the CPU sums in double, so a row's loss differs by about 1e-7, relative.
 */

template <typename T, bool BACKWARD>
__global__ void squares(float *losses, T *y, const float *targets, int64_t n, int64_t width,
                        const double *scale)
{
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f, factor = 0.0f;

    if (row >= n)
        return;
    if (BACKWARD)
        factor = (float)(2.0 * *scale);
    for (int64_t i = row * width; i < (row + 1) * width; i++) {
        float off = isnan(targets[i]) ? 0.0f : dt_to_float(y[i]) - targets[i];

        sum += off * off;
        if (BACKWARD)
            y[i] = dt_from_float<T>(off * factor);
    }
    losses[row] = sum;
}

template <bool BACKWARD>
static dt_status run_squared_error(dt_device *device, dt_tensor *losses, const dt_tensor *y,
                                   const dt_tensor *targets, const double *scale, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = dt_tensor_rows(y), width = dt_tensor_cols(y);

    DT_ASSERT(losses->dtype == DT_F32 && targets->dtype == DT_F32 && dt_tensor_elems(losses) == n &&
              dt_tensor_elems(targets) == dt_tensor_elems(y));
    if (n == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(y->dtype, "squared error", err, {
        DT_CUDA_LAUNCH((squares<T, BACKWARD>), (unsigned)((n + DT_CUDA_BLOCK - 1) / DT_CUDA_BLOCK),
                       DT_CUDA_BLOCK, 0, state->stream, (float *)losses->data, (T *)y->data,
                       (const float *)targets->data, n, width, scale);
    });
    return dt_cuda_launched("squared error", err);
}

dt_status dt_cuda_squared_error_forward(dt_device *device, dt_tensor *losses, const dt_tensor *y,
                                        const dt_tensor *targets, dt_error *err)
{
    return run_squared_error<false>(device, losses, y, targets, NULL, err);
}

dt_status dt_cuda_squared_error_backward(dt_device *device, dt_tensor *losses, dt_tensor *y,
                                         const dt_tensor *targets, const double *scale,
                                         dt_error *err)
{
    return run_squared_error<true>(device, losses, y, targets, scale, err);
}
