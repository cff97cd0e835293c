/* loss: cross entropy of logits, and the squared error of numbers. */
#include <limits.h>

#include "engine/ops/cuda/cuda_int.cuh"

/* cross_entropy: computes the loss of each row of logits; backward replaces the logits by their gradient.
 *
 * One block per row. The row is read once for the maximum and the sum of exponentials together: each thread
 * keeps both, and rescales its sum when its maximum grows (Milakov and Gimelshein 2018). Backward needs the row
 * again for the gradient. If two such blocks fit on a multiprocessor (50,304 bf16 logits do on sm_90), each
 * thread keeps what it has read in shared memory. Otherwise it reads the row again from global memory, and the
 * second-level cache may miss: the rows of all running blocks are as large as that cache. Both ways give the
 * same bits.
 * Errors       a target outside the vocabulary has loss 0; it is recorded on the device and reported by
 *              synchronize()
 * Bytes        for V logits of bf16: forward reads 2 V per row; backward reads and writes 2 V, or reads them twice
 */

#define THREADS 512
#define AHEAD \
    4 /* vectors that a thread loads before it uses the first: hides the latency of memory */
#define SHARED_BESIDE 1280 /* bytes of shared memory per block for the driver and for the sums */

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

/* Computes the maximum and the sum of exp(x - maximum) over the block. With KEPT the row must be
 * aligned, and its whole vectors are also stored in `kept`. */
template <typename T, bool KEPT>
__device__ void row_statistics(float *max_out, float *sum_out, T *kept, const T *row, int64_t vocab,
                               bool aligned, float *shared)
{
    constexpr int N = dt_vec<T>::N;
    float max = -INFINITY, sum = 0.0f, all;
    int64_t whole = aligned ? vocab / N * N : 0, stride = (int64_t)blockDim.x * N;

    for (int64_t first = (int64_t)threadIdx.x * N; first < whole; first += AHEAD * stride) {
        dt_vec<T> x[AHEAD];

#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (first + i * stride < whole)
                x[i] = *(const dt_vec<T> *)(row + first + i * stride);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (first + i * stride < whole) {
                if (KEPT)
                    *(dt_vec<T> *)(kept + first + i * stride) = x[i];
                add_vector(&max, &sum, x[i]);
            }
    }
    for (int64_t j = whole + threadIdx.x; j < vocab; j += blockDim.x) {
        float x = dt_to_float(row[j]);

        if (x > max) {
            sum *= __expf(max - x);
            max = x;
        }
        if (max > -INFINITY)
            sum += __expf(x - max);
    }
    all = dt_block_max(max, shared);
    sum = max > -INFINITY ? sum * __expf(max - all) : 0.0f;
    *sum_out = dt_block_sum(sum, shared);
    *max_out = all;
}

/* Returns the sum of x - max over the block. Only label smoothing needs it; it reads the row once
 * more. */
template <typename T>
__device__ float row_sum(const T *row, int64_t vocab, float max, float *shared)
{
    float sum = 0.0f;

    for (int64_t j = threadIdx.x; j < vocab; j += blockDim.x)
        sum += dt_to_float(row[j]) - max;
    return dt_block_sum(sum, shared);
}

template <typename T, bool BACKWARD, bool KEPT>
__global__ void __launch_bounds__(THREADS, 2)
    rows(float *losses, T *logits, const int32_t *targets, const float *weights, int64_t vocab,
         int64_t padded, const double *scale_at, float smoothing, bool aligned, int *fault)
{
    DT_CUDA_DYNAMIC_SHARED(memory); /* used with KEPT: a row */
    constexpr int N = dt_vec<T>::N;
    __shared__ float shared[32];
    int64_t row = blockIdx.x, whole_end = KEPT ? vocab / N * N : 0;
    T *kept = (T *)memory, *x = logits + row * padded;
    int32_t target = targets[row];
    bool counts = target >= 0 && target < vocab;
    float max, sum, factor, even, mean = 0.0f, scale;
    float weight = weights != NULL ? weights[row] : 1.0f;

    row_statistics<T, KEPT>(&max, &sum, kept, x, vocab, aligned, shared);
    if (smoothing > 0.0f)
        mean = row_sum(x, vocab, max, shared) / (float)vocab;
    if (threadIdx.x == 0 && target >= vocab)
        atomicMax(fault, target < INT_MAX ? target + 1 : target);
    if (threadIdx.x == 0)
        losses[row] =
            counts ? weight * (logf(sum) + (1.0f - smoothing) * (max - dt_to_float(x[target])) -
                               smoothing * mean)
                   : 0.0f;
    if (!BACKWARD)
        return;
    __syncthreads(); /* after all threads have read the target's logit, which is overwritten below */
    scale = (float)(*scale_at * (double)weight);
    even = scale * smoothing / (float)vocab;
    factor = counts ? scale / sum : 0.0f;
    for (int64_t j = (int64_t)threadIdx.x * N; j < padded; j += (int64_t)blockDim.x * N) {
        dt_vec<T> in, out;
        bool whole = aligned && j + N <= padded;

        if (KEPT && j < whole_end)
            in = *(const dt_vec<T> *)(kept + j); /* written by this thread itself */
        else if (whole)
            in = *(const dt_vec<T> *)(x + j);
        else
            for (int k = 0; k < N && j + k < padded; k++)
                in.v[k] = x[j + k];
#pragma unroll
        for (int k = 0; k < N; k++) {
            float g = 0.0f;

            if (counts && j + k < vocab)
                g = __expf(dt_to_float(in.v[k]) - max) * factor - even -
                    (j + k == target ? scale * (1.0f - smoothing) : 0.0f);
            out.v[k] = dt_from_float<T>(g);
        }
        if (whole)
            *(dt_vec<T> *)(x + j) = out;
        else
            for (int k = 0; k < N && j + k < padded; k++)
                x[j + k] = out.v[k];
    }
}

/* Computes backward with the row in shared memory. Sets *done to false if two rows
 * do not fit the shared memory of a multiprocessor. */
template <typename T>
static dt_status run_kept(dt_cuda_state *state, dt_tensor *losses, const dt_tensor *logits,
                          const dt_tensor *targets, const float *weights, int64_t vocab,
                          const double *scale, double smoothing, bool *done, dt_error *err)
{
    int64_t n = dt_tensor_rows(logits), padded = dt_tensor_cols(logits);
    size_t bytes = (size_t)padded * sizeof(T);
    dt_status st = DT_OK;

    *done = 2 * (bytes + SHARED_BESIDE) <= (size_t)state->shared_bytes;
    if (!*done)
        return DT_OK;
    DT_TRY(
        dt_cuda_check(cudaFuncSetAttribute((const void *)rows<T, true, true>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
                      "cross entropy", err));
    DT_CUDA_LAUNCH((rows<T, true, true>), (unsigned)n, THREADS, bytes, state->stream,
                   (float *)losses->data, (T *)logits->data, (const int32_t *)targets->data,
                   weights, vocab, padded, scale, (float)smoothing, true, state->fault);
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
              dt_tensor_elems(targets) == n && vocab >= 1 && vocab <= padded);
    if (n == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(logits->dtype, "cross entropy", err, {
        bool aligned = dt_cuda_aligned<T>(logits->data, padded), done = false;

        if (BACKWARD && aligned)
            DT_TRY(run_kept<T>(state, losses, logits, targets, each, vocab, scale, smoothing, &done,
                               err));
        if (!done)
            DT_CUDA_LAUNCH((rows<T, BACKWARD, false>), (unsigned)n, THREADS, 0, state->stream,
                           (float *)losses->data, (T *)logits->data, (const int32_t *)targets->data,
                           each, vocab, padded, scale, (float)smoothing, aligned, state->fault);
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
    __shared__ float shared[32];
    int64_t row = blockIdx.x, column = targets[row] - part.first;
    const T *x = logits + row * padded;
    float max, sum, mean = 0.0f;

    row_statistics<T, false>(&max, &sum, NULL, x, part.count, aligned, shared);
    if (smooth)
        mean = row_sum(x, part.count, 0.0f, shared) / (float)part.all;
    if (threadIdx.x != 0)
        return;
    if (targets[row] >= part.all)
        atomicMax(fault, targets[row] < INT_MAX ? targets[row] + 1 : targets[row]);
    own[row] = max;
    own[n + row] = sum;
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
              part->count >= 0 && part->count <= padded);
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
