/* columns: sums the rows of a matrix, by stripes of rows that are added in order.
 *
 * A kernel writes the sums of each stripe to scratch: one that has the rows anyway, or dt_columns_stripes. dt_columns_add
 * then adds the stripes. Its blocks have 32 columns and up to 32 warps; each warp adds every so many stripes, and the
 * warps' sums are added in order. The order of additions depends only on the number of stripes.
 */
#ifndef DT_ENGINE_OPS_CUDA_COLUMNS_CUH
#define DT_ENGINE_OPS_CUDA_COLUMNS_CUH

#include "engine/ops/cuda/cuda_int.cuh"

#define DT_COLUMNS_WARPS 32 /* of a block that adds stripes, at most */
#define DT_COLUMNS_ROWS  8  /* rows that a block of dt_columns_stripes reads at once */
#define DT_COLUMNS_OUT   3

/* Where the sums of up to three matrices of equal width are added; NULL: nowhere. */
struct dt_columns_out {
    float *at[DT_COLUMNS_OUT];
};

/* out.at[i][j] += the sum of column i * c + j of parts (stripes, width). */
static __global__ void dt_columns_kernel(dt_columns_out out, const float *parts, int stripes,
                                         int64_t c, int64_t width)
{
    __shared__ float sums[DT_COLUMNS_WARPS][32];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = (int)blockDim.x / 32;
    int64_t column = (int64_t)blockIdx.x * 32 + lane;
    float sum = 0.0f, *to;

    if (column < width)
#pragma unroll 8
        for (int i = warp; i < stripes; i += warps)
            sum += parts[(int64_t)i * width + column];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || column >= width)
        return;
    for (int i = 1; i < warps; i++)
        sum += sums[i][lane];
    to = column < c ? out.at[0] : column < 2 * c ? out.at[1] : out.at[2];
    if (to != NULL)
        to[column % c] += sum;
}

static inline dt_status dt_columns_add(dt_cuda_state *state, dt_columns_out out, const float *parts,
                                       unsigned stripes, int64_t c, int64_t width, const char *op,
                                       dt_error *err)
{
    unsigned warps = stripes < DT_COLUMNS_WARPS ? stripes : DT_COLUMNS_WARPS;

    if (out.at[0] == NULL && out.at[1] == NULL && out.at[2] == NULL)
        return DT_OK;
    DT_CUDA_LAUNCH(dt_columns_kernel, (unsigned)dt_cuda_ceil(width, 32), warps * 32, 0,
                   state->stream, out, parts, (int)stripes, c, width);
    return dt_cuda_launched(op, err);
}

/* Rows in memory: row t of sequence b starts at element b * sequence + t * row. */
struct dt_columns_rows {
    const void *data;
    int64_t sequences, rows; /* rows of each sequence */
    int64_t row, sequence;   /* strides */
    int64_t columns;
};

/* parts (stripes, columns): the sums of each stripe of all rows; blockIdx.y is the stripe. A lane has a vector of
 * columns if the rows are WHOLE, aligned vectors, else one column. */
template <typename T, bool WHOLE>
static __global__ void dt_columns_stripes(float *parts, dt_columns_rows x)
{
    constexpr int N = WHOLE ? dt_vec<T>::N : 1;
    __shared__ float sums[DT_COLUMNS_ROWS][N][32];
    int lane = (int)threadIdx.x % 32, group = (int)threadIdx.x / 32;
    int64_t first = ((int64_t)blockIdx.x * 32 + lane) * N, all = x.sequences * x.rows;
    int64_t begin = all * blockIdx.y / gridDim.y, end = all * (blockIdx.y + 1) / gridDim.y;
    bool flat = x.sequence == x.rows * x.row;
    float sum[N] = {};

    if (first < x.columns)
#pragma unroll 4
        for (int64_t i = begin + group; i < end; i += DT_COLUMNS_ROWS) {
            int64_t at = flat ? i * x.row : i / x.rows * x.sequence + i % x.rows * x.row;
            const T *row = (const T *)x.data + at + first;

            if (WHOLE) {
                dt_vec<T> v = *(const dt_vec<T> *)row;

#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] += dt_to_float(v.v[k]);
            } else {
                sum[0] += dt_to_float(*row);
            }
        }
#pragma unroll
    for (int k = 0; k < N; k++)
        sums[group][k][lane] = sum[k];
    __syncthreads();
    for (int j = (int)threadIdx.x; j < 32 * N; j += DT_CUDA_BLOCK) {
        int64_t column = (int64_t)blockIdx.x * 32 * N + j;
        float all_groups = 0.0f;

        if (column >= x.columns)
            continue;
        for (int g = 0; g < DT_COLUMNS_ROWS; g++)
            all_groups += sums[g][j % N][j / N];
        parts[(int64_t)blockIdx.y * x.columns + column] = all_groups;
    }
}

/* out[j] += the sum of column j of the rows. Uses the device's scratch. */
static inline dt_status dt_columns_sum(dt_device *device, float *out, const dt_columns_rows &x,
                                       dt_dtype dtype, const char *op, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    size_t bytes = dt_dtype_bytes(dtype);
    bool whole = (((uintptr_t)x.data | (uintptr_t)x.row * bytes | (uintptr_t)x.sequence * bytes |
                   (uintptr_t)x.columns * bytes) &
                  15) == 0;
    int64_t across = dt_cuda_ceil(x.columns, 32 * (whole ? 16 / (int64_t)bytes : 1));
    int64_t wanted = dt_cuda_ceil((int64_t)state->processors * 4, across);
    int64_t most = dt_cuda_ceil(x.sequences * x.rows, 4 * DT_COLUMNS_ROWS);
    unsigned stripes = (unsigned)(wanted < most ? wanted : most);
    dt_status st = DT_OK;
    void *scratch;

    if (stripes == 0)
        return DT_OK;
    DT_TRY(dt_cuda_scratch(&scratch, device, (size_t)stripes * (size_t)x.columns * sizeof(float),
                           err));
    DT_CUDA_DISPATCH(dtype, op, err, {
        if (whole)
            DT_CUDA_LAUNCH((dt_columns_stripes<T, true>), dim3((unsigned)across, stripes),
                           DT_CUDA_BLOCK, 0, state->stream, (float *)scratch, x);
        else
            DT_CUDA_LAUNCH((dt_columns_stripes<T, false>), dim3((unsigned)across, stripes),
                           DT_CUDA_BLOCK, 0, state->stream, (float *)scratch, x);
    });
    DT_TRY(dt_cuda_launched(op, err));
    DT_TRY(dt_columns_add(state, {{out}}, (const float *)scratch, stripes, x.columns, x.columns, op,
                          err));
out:
    return st;
}

#endif
