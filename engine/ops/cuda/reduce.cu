/* reduce: computes the sum, or the sum of squares, of whole tensors.
 *
 * The elements are cut into fixed pieces, one per block: as many as give each thread an element, at most
 * PIECES_MOST. Each block sums its piece in double; one block adds their results in a tree of a fixed shape.
 * The result depends only on the elements and their number.
 */
#include <string.h>

#include "engine/ops/cuda/cuda_int.cuh"

#define PIECES_MOST 1024

static int pieces_of(const dt_tensor *x)
{
    int64_t wanted = dt_cuda_ceil(dt_tensor_elems(x), DT_CUDA_BLOCK);

    return (int)(wanted < 1 ? 1 : wanted < PIECES_MOST ? wanted : PIECES_MOST);
}

template <bool SQUARES> __global__ void pieces(double *parts, const float *x, int64_t elems)
{
    __shared__ double shared[32];
    int64_t begin = elems * blockIdx.x / gridDim.x, end = elems * (blockIdx.x + 1) / gridDim.x;
    double total = 0;

    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        double value = x[i];

        total += SQUARES ? value * value : value;
    }
    total = dt_block_sum(total, shared);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = total;
}

/* The number of pieces of each tensor; each has room for PIECES_MOST. */
struct piece_counts {
    int of[DT_CUDA_VALUES];
};

/* out[blockIdx.x] = the sum of that tensor's pieces. */
__global__ void join(double *out, const double *parts, piece_counts counts)
{
    __shared__ double shared[32];
    double total = 0;

    for (int i = (int)threadIdx.x; i < counts.of[blockIdx.x]; i += (int)blockDim.x)
        total += parts[(int64_t)blockIdx.x * PIECES_MOST + i];
    total = dt_block_sum(total, shared);
    if (threadIdx.x == 0)
        out[blockIdx.x] = total;
}

/* Reduces at most DT_CUDA_VALUES tensors. */
static dt_status run(dt_device *device, double *out, const dt_tensor *x, int count, bool squares,
                     dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    size_t bytes = (size_t)count * sizeof(double);
    dt_status st = DT_OK;
    double *parts, *sums;
    piece_counts counts = {};
    void *scratch;

    DT_TRY(dt_cuda_scratch(&scratch, device, (PIECES_MOST + 1) * bytes, err));
    parts = (double *)scratch;
    sums = parts + (size_t)count * PIECES_MOST;
    for (int i = 0; i < count; i++) {
        DT_ASSERT(x[i].dtype == DT_F32);
        counts.of[i] = pieces_of(&x[i]);
        if (squares)
            DT_CUDA_LAUNCH((pieces<true>), (unsigned)counts.of[i], DT_CUDA_BLOCK, 0, state->stream,
                           parts + (size_t)i * PIECES_MOST, (const float *)x[i].data,
                           dt_tensor_elems(&x[i]));
        else
            DT_CUDA_LAUNCH((pieces<false>), (unsigned)counts.of[i], DT_CUDA_BLOCK, 0, state->stream,
                           parts + (size_t)i * PIECES_MOST, (const float *)x[i].data,
                           dt_tensor_elems(&x[i]));
    }
    DT_CUDA_LAUNCH(join, (unsigned)count, DT_CUDA_BLOCK, 0, state->stream, sums, parts, counts);
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
