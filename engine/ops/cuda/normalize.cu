/* normalize: computes out = x / max(|x|, eps).
 *
 * A fixed number of blocks sums the squares of fixed parts of the tensor in double. Every block of the second
 * kernel adds these sums in the same order and processes its share of the elements. The host waits for
 * nothing.
 */
#include "engine/ops/cuda/cuda_int.cuh"

#define PIECES 256 /* blocks of the first kernel; the second kernel adds one sum per thread */

__global__ void squares(double *parts, const float *x, int64_t elems)
{
    __shared__ double shared[32];
    int64_t begin = elems * blockIdx.x / PIECES, end = elems * (blockIdx.x + 1) / PIECES;
    double total = 0;

    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
        total += (double)x[i] * (double)x[i];
    total = dt_block_sum(total, shared);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = total;
}

template <typename T>
__global__ void divide(T *out, const float *x, int64_t elems, const double *parts, double eps)
{
    __shared__ double shared[32];
    __shared__ float factor;
    double total = dt_block_sum(parts[threadIdx.x], shared);

    if (threadIdx.x == 0)
        factor = (float)(1.0 / fmax(sqrt(total), eps));
    __syncthreads();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < elems;
         i += (int64_t)gridDim.x * blockDim.x)
        out[i] = dt_from_float<T>(factor * x[i]);
}

dt_status dt_cuda_normalize(dt_device *device, dt_tensor *out, const dt_tensor *x, double eps,
                            dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t elems = dt_tensor_elems(x);
    dt_status st = DT_OK;
    void *scratch;

    DT_ASSERT(x->dtype == DT_F32 && dt_tensor_elems(out) == elems);
    if (elems == 0)
        return DT_OK;
    DT_TRY(dt_cuda_scratch(&scratch, device, PIECES * sizeof(double), err));
    DT_CUDA_LAUNCH(squares, PIECES, DT_CUDA_BLOCK, 0, state->stream, (double *)scratch,
                   (const float *)x->data, elems);
    DT_CUDA_DISPATCH(out->dtype, "normalize", err, {
        unsigned blocks = dt_cuda_blocks(state, elems, PIECES);

        DT_CUDA_LAUNCH((divide<T>), blocks, PIECES, 0, state->stream, (T *)out->data,
                       (const float *)x->data, elems, (const double *)scratch, eps);
    });
    DT_TRY(dt_cuda_launched("normalize", err));
out:
    return st;
}
