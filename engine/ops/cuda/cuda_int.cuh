/* cuda_int: what the CUDA kernels share: the device's state, vectors of 16 bytes, sums in a fixed
 * order, launches.
 *
 * Everything is queued on the device's one stream; an op returns before it has run. What a kernel
 * finds wrong (a token outside the vocabulary) is noted in `fault` on the device and told by the
 * next synchronize().
 * Determinism  sums go through warp and block trees of a fixed shape and, across blocks, through
 *              partial results in scratch that are added in order. No float atomics.
 */
#ifndef DT_ENGINE_OPS_CUDA_INT_CUH
#define DT_ENGINE_OPS_CUDA_INT_CUH

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "base/error.h"
#include "engine/device/device.h"
#include "engine/ops/list.h"
#include "engine/ops/ops.h"
#include "engine/tensor.h"

#define DT_CUDA_BLOCK 256 /* threads of a block, where nothing speaks for another number */
#define DT_CUDA_WARP  32

#define DT_CUDA_VALUES 64 /* results of reductions that one wait brings */

struct dt_cuda_products;      /* product.cu: handles, plans, workspace */
struct dt_cuda_attention;     /* attention_cudnn.cu: cuDNN, and what was chosen for which shape */
struct dt_cuda_own_attention; /* attention_own.cu: which of our own kernels was chosen for which */

struct dt_cuda_state {
    int index;        /* of the card */
    int processors;   /* streaming multiprocessors */
    int shared_bytes; /* of each of these, for all blocks on it */
    bool tf32;        /* fp32 products may round their inputs to tf32 */
    bool recording;   /* the stream is being captured (graph.h) */
    cudaStream_t stream;
    dt_cuda_products *products;
    dt_cuda_attention *attention;         /* NULL before it is needed */
    dt_cuda_own_attention *own_attention; /* NULL before it is needed */
    void *scratch;                        /* grows in the first step, then stays */
    size_t scratch_bytes;
    int64_t scratch_moves; /* how often it has grown: what was recorded before knows another one */
    int *fault;            /* on the device: 0, or a token that is outside the vocabulary, plus 1 */
    double *host_values;   /* pinned, DT_CUDA_VALUES: where results of reductions land */
};

static inline dt_cuda_state *dt_cuda_of(dt_device *device)
{
    return (dt_cuda_state *)device->state;
}

/* Records a failed call of the runtime: out of memory is DT_ERR_NOMEM, all else DT_ERR_CUDA. */
dt_status dt_cuda_check(cudaError_t result, const char *what, dt_error *err);

/* kernel<<<grid, block, shared, stream>>>(...). Kernels are launched in this one way so that
 * tests/gpu can run them on a CPU as well, thread by thread, where there is no card. */
#ifndef DT_CUDA_LAUNCH
#define DT_CUDA_LAUNCH(kernel, grid, block, shared, stream, ...) \
    (kernel)<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)
#define DT_CUDA_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]
#endif

/* After a launch. */
static inline dt_status dt_cuda_launched(const char *op, dt_error *err)
{
    return dt_cuda_check(cudaGetLastError(), op, err);
}

/* At least `bytes`, aligned to 256; valid until the next op of the device. Growing it waits for the
 * stream, which happens in the first step only. */
dt_status dt_cuda_scratch(void **out, dt_device *device, size_t bytes, dt_error *err);

static inline int64_t dt_cuda_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Blocks of a grid-stride loop over `items`, `each` per block. */
static inline unsigned dt_cuda_blocks(const dt_cuda_state *state, int64_t items, int64_t each)
{
    int64_t wanted = dt_cuda_ceil(items, each), most = (int64_t)state->processors * 16;

    return (unsigned)(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

/* --- types */

template <typename T> struct dt_vec {
    static constexpr int N = 16 / (int)sizeof(T);
    T v[N];
} __attribute__((aligned(16)));

/* Four neighbours, which are one load or store whatever their type. */
template <typename T> struct dt_four {
    T v[4];
} __attribute__((aligned(4 * sizeof(T))));

__device__ inline float dt_to_float(float x)
{
    return x;
}
__device__ inline float dt_to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
__device__ inline float dt_to_float(__half x)
{
    return __half2float(x);
}

template <typename T> __device__ inline T dt_from_float(float x);
template <> __device__ inline float dt_from_float<float>(float x)
{
    return x;
}
template <> __device__ inline __nv_bfloat16 dt_from_float<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}
template <> __device__ inline __half dt_from_float<__half>(float x)
{
    return __float2half_rn(x);
}

/* Runs what follows with T as the type of the tensors' elements. */
#define DT_CUDA_DISPATCH(dtype, op, err, ...)                                        \
    do {                                                                             \
        switch (dtype) {                                                             \
        case DT_F32: {                                                               \
            using T = float;                                                         \
            __VA_ARGS__;                                                             \
            break;                                                                   \
        }                                                                            \
        case DT_BF16: {                                                              \
            using T = __nv_bfloat16;                                                 \
            __VA_ARGS__;                                                             \
            break;                                                                   \
        }                                                                            \
        case DT_F16: {                                                               \
            using T = __half;                                                        \
            __VA_ARGS__;                                                             \
            break;                                                                   \
        }                                                                            \
        default:                                                                     \
            return DT_FAIL(err, DT_ERR_UNSUPPORTED, "%s: no CUDA code for '%s'", op, \
                           dt_dtype_name(dtype));                                    \
        }                                                                            \
    } while (0)

/* Whether rows of `cols` elements that start at `data` are whole vectors. */
template <typename T> static inline bool dt_cuda_aligned(const void *data, int64_t cols)
{
    return ((uintptr_t)data & 15) == 0 && cols % dt_vec<T>::N == 0;
}

/* Whether data starts where fours of its type do. */
template <typename T> static inline bool dt_cuda_fours(const void *data)
{
    return (uintptr_t)data % sizeof(dt_four<T>) == 0;
}

/* Elements i .. i+3 of x, of `elems`; one load where `whole`. */
template <typename T>
__device__ inline dt_four<T> dt_four_load(const T *x, int64_t i, int64_t elems, bool whole)
{
    dt_four<T> four;

    if (whole)
        return *(const dt_four<T> *)(x + i);
#pragma unroll
    for (int k = 0; k < 4; k++)
        four.v[k] = x[i + k < elems ? i + k : i];
    return four;
}

template <typename T>
__device__ inline void dt_four_store(T *x, int64_t i, int64_t elems, bool whole,
                                     const dt_four<T> &four)
{
    if (whole) {
        *(dt_four<T> *)(x + i) = four;
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (i + k < elems)
            x[i + k] = four.v[k];
}

/* --- sums of a fixed shape */

__device__ inline float dt_warp_sum(float x)
{
#pragma unroll
    for (int step = 16; step > 0; step >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__device__ inline float dt_warp_max(float x)
{
#pragma unroll
    for (int step = 16; step > 0; step >>= 1)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

__device__ inline double dt_warp_sum(double x)
{
#pragma unroll
    for (int step = 16; step > 0; step >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* Over the block, the same on every thread. `shared` holds 32 elements. */
template <typename F> __device__ inline F dt_block_sum(F x, F *shared)
{
    int warp = (int)threadIdx.x / DT_CUDA_WARP, lane = (int)threadIdx.x % DT_CUDA_WARP;
    int warps = ((int)blockDim.x + DT_CUDA_WARP - 1) / DT_CUDA_WARP;

    x = dt_warp_sum(x);
    __syncthreads(); /* the last use of `shared` is over */
    if (lane == 0)
        shared[warp] = x;
    __syncthreads();
    return dt_warp_sum(lane < warps ? shared[lane] : (F)0);
}

__device__ inline float dt_block_max(float x, float *shared)
{
    int warp = (int)threadIdx.x / DT_CUDA_WARP, lane = (int)threadIdx.x % DT_CUDA_WARP;
    int warps = ((int)blockDim.x + DT_CUDA_WARP - 1) / DT_CUDA_WARP;

    x = dt_warp_max(x);
    __syncthreads();
    if (lane == 0)
        shared[warp] = x;
    __syncthreads();
    return dt_warp_max(lane < warps ? shared[lane] : -INFINITY);
}

/* --- every op, with the type that ops.h gives it */
#define DT_CUDA_NAME(op)    dt_cuda_##op
#define DT_CUDA_DECLARE(op) extern __typeof__(*((dt_ops *)0)->op) DT_CUDA_NAME(op);

extern "C" {
DT_OPS(DT_CUDA_DECLARE)
}

/* --- product.cu */
dt_status dt_cuda_products_open(dt_cuda_products **out, dt_error *err);
void dt_cuda_products_close(dt_cuda_products *products);

/* --- attention_cudnn.cu, attention_own.cu; both accept NULL */
void dt_cuda_attention_close(dt_cuda_attention *attention);
void dt_cuda_own_attention_close(dt_cuda_own_attention *own);

#endif
