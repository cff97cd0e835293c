/* reduce: the sum, and the sum of squares, of a whole tensor.
 *
 * A fixed number of blocks sums a fixed cut of the elements in double; one block adds their results
 * in a tree of a fixed shape. The result depends on the elements and the card's size alone.
 */
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

__global__ void join(double *out, const double *parts)
{
    __shared__ double shared[32];
    double total = 0;

    for (int i = (int)threadIdx.x; i < PIECES; i += (int)blockDim.x)
        total += parts[i];
    total = dt_block_sum(total, shared);
    if (threadIdx.x == 0)
        *out = total;
}

static dt_status run(dt_device *device, double *out, const dt_tensor *x, bool squares,
                     dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_status st = DT_OK;
    void *scratch;
    double *parts;

    DT_ASSERT(x->dtype == DT_F32);
    DT_TRY(dt_cuda_scratch(&scratch, device, (PIECES + 1) * sizeof(double), err));
    parts = (double *)scratch;
    if (squares)
        DT_CUDA_LAUNCH((pieces<true>), PIECES, DT_CUDA_BLOCK, 0, state->stream, parts,
                       (const float *)x->data, dt_tensor_elems(x));
    else
        DT_CUDA_LAUNCH((pieces<false>), PIECES, DT_CUDA_BLOCK, 0, state->stream, parts,
                       (const float *)x->data, dt_tensor_elems(x));
    DT_CUDA_LAUNCH(join, 1, PIECES, 0, state->stream, parts + PIECES, parts);
    DT_TRY(dt_cuda_launched("sum", err));
    DT_TRY(dt_cuda_check(cudaMemcpyAsync(state->host_value, parts + PIECES, sizeof(double),
                                         cudaMemcpyDeviceToHost, state->stream),
                         "sum", err));
    DT_TRY(dt_cuda_check(cudaStreamSynchronize(state->stream), "sum", err));
    *out = *state->host_value;
out:
    return st;
}

dt_status dt_cuda_sum_squares(dt_device *device, double *out, const dt_tensor *x, dt_error *err)
{
    return run(device, out, x, true, err);
}

dt_status dt_cuda_sum(dt_device *device, double *out, const dt_tensor *x, dt_error *err)
{
    return run(device, out, x, false, err);
}
