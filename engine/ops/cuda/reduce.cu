/* reduce: the sum, and the sum of squares, of whole tensors.
 *
 * A fixed number of blocks sums a fixed cut of the elements in double; one block adds their results
 * in a tree of a fixed shape. The result depends on the elements and the card's size alone.
 */
#include <string.h>

#include "engine/ops/cuda/cuda_int.cuh"

#define PIECES 1024

template <bool SQUARES> __global__ void pieces(double *parts, const float *x, int64_t elems)
{
    __shared__ double shared[32];
    int64_t begin = elems * blockIdx.x / PIECES, end = elems * (blockIdx.x + 1) / PIECES;
    double total = 0;

    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        double value = x[i];

        total += SQUARES ? value * value : value;
    }
    total = dt_block_sum(total, shared);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = total;
}

/* out[blockIdx.x] = the sum of its pieces. */
__global__ void join(double *out, const double *parts)
{
    __shared__ double shared[32];
    double total = 0;

    for (int i = (int)threadIdx.x; i < PIECES; i += (int)blockDim.x)
        total += parts[(int64_t)blockIdx.x * PIECES + i];
    total = dt_block_sum(total, shared);
    if (threadIdx.x == 0)
        out[blockIdx.x] = total;
}

/* At most DT_CUDA_VALUES tensors. */
static dt_status run(dt_device *device, double *out, const dt_tensor *x, int count, bool squares,
                     dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    size_t bytes = (size_t)count * sizeof(double);
    dt_status st = DT_OK;
    double *parts, *sums;
    void *scratch;

    DT_TRY(dt_cuda_scratch(&scratch, device, (PIECES + 1) * bytes, err));
    parts = (double *)scratch;
    sums = parts + (size_t)count * PIECES;
    for (int i = 0; i < count; i++) {
        DT_ASSERT(x[i].dtype == DT_F32);
        if (squares)
            DT_CUDA_LAUNCH((pieces<true>), PIECES, DT_CUDA_BLOCK, 0, state->stream,
                           parts + (size_t)i * PIECES, (const float *)x[i].data,
                           dt_tensor_elems(&x[i]));
        else
            DT_CUDA_LAUNCH((pieces<false>), PIECES, DT_CUDA_BLOCK, 0, state->stream,
                           parts + (size_t)i * PIECES, (const float *)x[i].data,
                           dt_tensor_elems(&x[i]));
    }
    DT_CUDA_LAUNCH(join, (unsigned)count, PIECES, 0, state->stream, sums, parts);
    DT_TRY(dt_cuda_launched("sum", err));
    DT_TRY(dt_cuda_check(
        cudaMemcpyAsync(state->host_values, sums, bytes, cudaMemcpyDeviceToHost, state->stream),
        "sum", err));
    DT_TRY(dt_cuda_check(cudaStreamSynchronize(state->stream), "sum", err));
    memcpy(out, state->host_values, bytes);
out:
    return st;
}

dt_status dt_cuda_sum_squares(dt_device *device, double *out, const dt_tensor *x, dt_error *err)
{
    return run(device, out, x, 1, true, err);
}

dt_status dt_cuda_sum(dt_device *device, double *out, const dt_tensor *x, dt_error *err)
{
    return run(device, out, x, 1, false, err);
}

dt_status dt_cuda_sum_squares_each(dt_device *device, double *out, const dt_tensor *x, int count,
                                   dt_error *err)
{
    dt_status st = DT_OK;

    for (int i = 0; i < count; i += DT_CUDA_VALUES) {
        int left = count - i;

        DT_TRY(
            run(device, out + i, x + i, left < DT_CUDA_VALUES ? left : DT_CUDA_VALUES, true, err));
    }
out:
    return st;
}
