/* row_lengths: computes the length of each row of tokens without its padding. One warp per row. */
#include "engine/ops/cuda/cuda_int.cuh"

#define WARPS 4 /* warps per block */

__global__ void ends(int32_t *lengths, const int32_t *tokens, int64_t rows, int64_t columns,
                     int32_t pad)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    int lane = (int)threadIdx.x % 32, length = 1;

    if (row >= rows)
        return;
    for (int64_t j = lane; j < columns; j += 32)
        if (tokens[row * columns + j] != pad)
            length = (int)j + 1;
    for (int apart = 16; apart > 0; apart /= 2) {
        int other = __shfl_xor_sync(0xffffffffu, length, apart);

        length = other > length ? other : length;
    }
    if (lane == 0)
        lengths[row] = length;
}

dt_status dt_cuda_row_lengths(dt_device *device, dt_tensor *lengths, const dt_tensor *tokens,
                              int32_t pad, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t rows = tokens->dim[0];

    DT_ASSERT(tokens->dtype == DT_I32 && tokens->ndim == 2 && lengths->dtype == DT_I32 &&
              dt_tensor_elems(lengths) == rows);
    if (rows == 0)
        return DT_OK;
    DT_CUDA_LAUNCH(ends, (unsigned)dt_cuda_ceil(rows, WARPS), WARPS * 32, 0, state->stream,
                   (int32_t *)lengths->data, (const int32_t *)tokens->data, rows, tokens->dim[1],
                   pad);
    return dt_cuda_launched("row lengths", err);
}
