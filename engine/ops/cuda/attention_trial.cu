/* attention_trial: implements attention_trial.cuh. Memory: two more copies of out and lse while a
 * shape is tried. */
#include "engine/ops/cuda/attention_trial.cuh"

#include <float.h>

#include <new>

/* Largest difference of out, relative to the largest number of its row. It is relative to the row
 * because the outputs of late queries are averages of many values, and small. Both kernels round
 * probabilities and out to the type, in different orders: the bounds are some units of the 8 or 11
 * bits. */
#define OUT_BF16 (1.0f / 32)
#define OUT_F16  (1.0f / 256)
/* Largest difference of lse, an fp32 number. Sums and exponentials are precise to about 1e-6; a
 * missing mask or factor changes lse by tenths. */
#define LSE_APART 2e-3f

/* most[b] = the largest |a - b| in the rows that block b compares, each `cols` long, one warp per
 * row. If `relative`, the difference is divided by the row's largest |a|. A number that is not
 * finite in only one of the two counts as an infinite difference. */
template <typename T>
__global__ void apart_kernel(float *most, const T *a, const T *b, int64_t rows, int64_t cols,
                             bool relative)
{
    int64_t warps = blockDim.x / DT_CUDA_WARP, lane = threadIdx.x % DT_CUDA_WARP;
    __shared__ float shared[32];
    float worst = 0.0f;

    for (int64_t row = blockIdx.x * warps + threadIdx.x / DT_CUDA_WARP; row < rows;
         row += gridDim.x * warps) {
        float apart = 0.0f, size = 0.0f;

        for (int64_t i = row * cols + lane; i < (row + 1) * cols; i += DT_CUDA_WARP) {
            float x = dt_to_float(a[i]), y = dt_to_float(b[i]), d = x == y ? 0.0f : fabsf(x - y);

            apart = fmaxf(apart, d <= FLT_MAX ? d : INFINITY);
            size = fmaxf(size, fabsf(x));
        }
        apart = dt_warp_max(apart);
        size = dt_warp_max(size);
        if (relative && apart > 0.0f)
            apart = apart / size <= FLT_MAX ? apart / size : INFINITY;
        worst = fmaxf(worst, apart);
    }
    worst = dt_block_max(worst, shared);
    if (threadIdx.x == 0)
        most[blockIdx.x] = worst;
}

dt_status dt_attention_apart(float *apart, dt_device *device, const void *a, const void *b,
                             int64_t rows, int64_t cols, bool relative, dt_dtype dtype,
                             dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    unsigned blocks = dt_cuda_blocks(state, rows, DT_CUDA_BLOCK / DT_CUDA_WARP);
    size_t bytes = blocks * sizeof(float);
    float *host = new (std::nothrow) float[blocks];
    dt_status st = DT_OK;
    void *most;

    *apart = 0.0f;
    if (host == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory to compare results");
    DT_TRY(dt_cuda_scratch(&most, device, bytes, err));
    if (dtype == DT_F32)
        DT_CUDA_LAUNCH((apart_kernel<float>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                       (float *)most, (const float *)a, (const float *)b, rows, cols, relative);
    else if (dtype == DT_BF16)
        DT_CUDA_LAUNCH((apart_kernel<__nv_bfloat16>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                       (float *)most, (const __nv_bfloat16 *)a, (const __nv_bfloat16 *)b, rows,
                       cols, relative);
    else
        DT_CUDA_LAUNCH((apart_kernel<__half>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                       (float *)most, (const __half *)a, (const __half *)b, rows, cols, relative);
    DT_TRY(dt_cuda_launched("attention", err));
    DT_TRY(device->copy_out(device, host, most, bytes, err));
    for (unsigned i = 0; i < blocks; i++)
        *apart = fmaxf(*apart, host[i]);
out:
    delete[] host;
    return st;
}

dt_status dt_attention_results_take(dt_attention_results (&out)[2], const dt_attention &a,
                                    dt_dtype dtype, dt_error *err)
{
    size_t sums = (size_t)(a.batch * a.heads * a.queries);
    size_t out_bytes = (sums * (size_t)a.d * dt_dtype_bytes(dtype) + 255) / 256 * 256;
    size_t lse_bytes = (sums * sizeof(float) + 255) / 256 * 256;
    char *all = NULL;
    dt_status st = dt_cuda_check(cudaMalloc(&all, 2 * (out_bytes + lse_bytes)),
                                 "comparing attention kernels", err);

    for (int i = 0; i < 2; i++) {
        out[i].out = all == NULL ? NULL : all + (size_t)i * (out_bytes + lse_bytes);
        out[i].lse = all == NULL ? NULL : (float *)((char *)out[i].out + out_bytes);
    }
    return st;
}

dt_status dt_attention_results_agree(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                     const dt_attention_results (&theirs)[2], dt_error *err)
{
    int64_t heads = a.batch * a.heads, rows = heads * a.queries;
    float most = dtype == DT_BF16 ? OUT_BF16 : OUT_F16, apart[2], again[2];
    dt_status st = DT_OK;

    DT_TRY(dt_attention_apart(&again[0], device, theirs[0].out, theirs[1].out, rows, a.d, false,
                              dtype, err));
    DT_TRY(dt_attention_apart(&again[1], device, theirs[0].lse, theirs[1].lse, heads, a.queries,
                              false, DT_F32, err));
    DT_TRY(dt_attention_apart(&apart[0], device, a.out_written, theirs[0].out, rows, a.d, true,
                              dtype, err));
    DT_TRY(dt_attention_apart(&apart[1], device, a.lse, theirs[0].lse, heads, a.queries, false,
                              DT_F32, err));
    if (!(again[0] == 0.0f && again[1] == 0.0f))
        DT_THROW(err, DT_ERR_UNSUPPORTED, "its results change when it runs again");
    if (!(apart[0] <= most && apart[1] <= LSE_APART))
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "its results differ from the built-in kernel's by %g of a row's largest number, "
                 "sums by %g",
                 (double)apart[0], (double)apart[1]);
out:
    return st;
}
