/* columns: sums the rows of a matrix, by stripes of rows that are added in order.
 *
 * Another kernel writes the sums of each stripe to scratch; the kernel here adds the stripes. A block
 * has 32 columns and eight groups of threads; each group adds every eighth stripe, and the groups'
 * sums are added in order. The order of additions depends only on the number of stripes.
 */
#ifndef DT_ENGINE_OPS_CUDA_COLUMNS_CUH
#define DT_ENGINE_OPS_CUDA_COLUMNS_CUH

#include "engine/ops/cuda/cuda_int.cuh"

#define DT_COLUMNS_GROUPS (DT_CUDA_BLOCK / 32)

/* first[j] += sum of column j of parts (stripes, width) for j < c; second[j - c] += the same for
 * the columns from c up to width. One that is NULL is not computed. */
static __global__ void dt_columns_kernel(float *first, float *second, const float *parts,
                                         int stripes, int64_t c, int64_t width)
{
    __shared__ float sums[DT_COLUMNS_GROUPS][32];
    int lane = (int)threadIdx.x % 32, group = (int)threadIdx.x / 32;
    int64_t column = (int64_t)blockIdx.x * 32 + lane;
    float sum = 0.0f;

    if (column < width)
#pragma unroll 4
        for (int i = group; i < stripes; i += DT_COLUMNS_GROUPS)
            sum += parts[(int64_t)i * width + column];
    sums[group][lane] = sum;
    __syncthreads();
    if (group > 0 || column >= width)
        return;
    for (int i = 1; i < DT_COLUMNS_GROUPS; i++)
        sum += sums[i][lane];
    if (column < c && first != NULL)
        first[column] += sum;
    if (column >= c && second != NULL)
        second[column - c] += sum;
}

static inline dt_status dt_columns_add(dt_cuda_state *state, float *first, float *second,
                                       const float *parts, unsigned stripes, int64_t c,
                                       int64_t width, const char *op, dt_error *err)
{
    if (first == NULL && second == NULL)
        return DT_OK;
    DT_CUDA_LAUNCH(dt_columns_kernel, (unsigned)dt_cuda_ceil(width, 32), DT_CUDA_BLOCK, 0,
                   state->stream, first, second, parts, (int)stripes, c, width);
    return dt_cuda_launched(op, err);
}

#endif
