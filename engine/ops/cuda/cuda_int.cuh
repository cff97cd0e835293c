/* cuda_int: shares code between the CUDA kernels: the state of the device, vectors of 16 bytes, sums in a
 * fixed order, launches, functions of every element, and the table of all ops.
 *
 * Everything is queued on the single stream of the device; an op returns before it has run. An error that
 * a kernel finds (a token outside the vocabulary) is recorded in `fault` on the device and reported by the
 * next synchronize().
 * Determinism  sums go through warp and block trees of a fixed shape and, across blocks, through partial
 *              results in scratch that are added in order. No float atomics.
 */
#ifndef DT_ENGINE_OPS_CUDA_CUDA_INT_CUH
#define DT_ENGINE_OPS_CUDA_CUDA_INT_CUH

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "base/error.h"
#include "engine/device/device.h"
#include "engine/ops/list.h"
#include "engine/ops/ops.h"
#include "engine/tensor.h"

#define DT_CUDA_BLOCK 256 /* default threads per block */
#define DT_CUDA_WARP  32

#define DT_CUDA_VALUES 64 /* results of reductions per wait */

struct dt_cuda_products;      /* product.cu: handles, plans, workspace */
struct dt_cuda_attention;     /* attention_cudnn.cu: cuDNN, and the choice for each shape */
struct dt_cuda_own_attention; /* attention_own.cu: the built-in kernel chosen for each shape */

struct dt_cuda_state {
    int index;        /* of the GPU */
    int processors;   /* streaming multiprocessors */
    int shared_bytes; /* shared memory per multiprocessor, for all its blocks */
    bool tf32;        /* fp32 products may round their inputs to tf32 */
    bool recording;   /* the stream is being captured (queue.h) */
    cudaStream_t stream;
    dt_cuda_products *products;
    dt_cuda_attention *attention;         /* NULL until it is needed */
    dt_cuda_own_attention *own_attention; /* NULL until it is needed */
    void *scratch;                        /* grows during the first step, then stays */
    size_t scratch_bytes;
    int64_t scratch_moves; /* how often scratch has grown: this invalidates recorded graphs */
    int *fault;            /* on the device: 0, or 1 + a token that is outside the vocabulary */
    double *host_values;   /* pinned, DT_CUDA_VALUES: destination of the results of reductions */
};

static inline dt_cuda_state *dt_cuda_of(dt_device *device)
{
    return (dt_cuda_state *)device->state;
}

/* Converts the result of a runtime call: out of memory is DT_ERR_NOMEM, other errors are
 * DT_ERR_CUDA. */
dt_status dt_cuda_check(cudaError_t result, const char *what, dt_error *err);

/* kernel<<<grid, block, shared, stream>>>(...). All kernels are launched by this macro, so that
 * tests/gpu can also run them on a CPU, thread by thread, on machines without a GPU. */
#ifndef DT_CUDA_LAUNCH
#define DT_CUDA_LAUNCH(kernel, grid, block, shared, stream, ...) \
    (kernel)<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)
#define DT_CUDA_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]
#endif

/* Call after a launch: returns its error. */
static inline dt_status dt_cuda_launched(const char *op, dt_error *err)
{
    return dt_cuda_check(cudaGetLastError(), op, err);
}

/* Gives scratch memory of at least `bytes`, aligned to 256, valid until the next op of the device.
 * Growing it waits for the stream, which happens only in the first step. */
dt_status dt_cuda_scratch(void **out, dt_device *device, size_t bytes, dt_error *err);

static inline int64_t dt_cuda_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Returns the number of blocks for a grid-stride loop over `items`, with `each` items per block. */
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

/* Four neighbouring elements, read or written as one access for every type. */
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

/* Runs the given code with T as the type of the tensors' elements. */
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

/* Returns whether rows of `cols` elements from `data` on are whole, aligned vectors. */
template <typename T> static inline bool dt_cuda_aligned(const void *data, int64_t cols)
{
    return ((uintptr_t)data & 15) == 0 && cols % dt_vec<T>::N == 0;
}

/* Returns whether data is aligned for dt_four. */
template <typename T> static inline bool dt_cuda_fours(const void *data)
{
    return (uintptr_t)data % sizeof(dt_four<T>) == 0;
}

/* Returns elements i .. i+3 of x, which has `elems` elements; with one load if `whole`. */
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

/* --- sums in a fixed order */

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

/* Returns the sum over the block, the same value on every thread. `shared` holds 32 elements. */
template <typename F> __device__ inline F dt_block_sum(F x, F *shared)
{
    int warp = (int)threadIdx.x / DT_CUDA_WARP, lane = (int)threadIdx.x % DT_CUDA_WARP;
    int warps = ((int)blockDim.x + DT_CUDA_WARP - 1) / DT_CUDA_WARP;

    x = dt_warp_sum(x);
    __syncthreads(); /* the previous use of `shared` is over */
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

/* --- every op, with its type from ops.h */
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

/* flat: applies a function to every element, 16 bytes per thread and iteration.
 *
 * F is called as f(index, values...) with fp32 values and returns the fp32 result; see activation.cu.
 */

/* y[i] = f(i, a[i]), or f(i, a[i], b[i]) with TWO; y may be a or b. */
template <typename T, bool TWO, typename F>
__global__ void dt_flat_kernel(T *y, const T *a, const T *b, int64_t elems, F f, bool aligned)
{
    constexpr int N = dt_vec<T>::N;
    int64_t stride = (int64_t)gridDim.x * blockDim.x * N;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; i < elems; i += stride) {
        dt_vec<T> x, z, out;
        bool whole = aligned && i + N <= elems;

        if (whole) {
            x = *(const dt_vec<T> *)(a + i);
            if (TWO)
                z = *(const dt_vec<T> *)(b + i);
        } else {
            for (int k = 0; k < N && i + k < elems; k++) {
                x.v[k] = a[i + k];
                if (TWO)
                    z.v[k] = b[i + k];
            }
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            out.v[k] =
                dt_from_float<T>(f(i + k, dt_to_float(x.v[k]), TWO ? dt_to_float(z.v[k]) : 0.0f));
        if (whole) {
            *(dt_vec<T> *)(y + i) = out;
        } else {
            for (int k = 0; k < N && i + k < elems; k++)
                y[i + k] = out.v[k];
        }
    }
}

/* Views that are not aligned to 16 bytes are processed element by element. */
template <typename F>
static dt_status dt_flat_run(dt_device *device, dt_tensor *y, const dt_tensor *a,
                             const dt_tensor *b, const char *op, F f, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t elems = dt_tensor_elems(y);
    uintptr_t all = (uintptr_t)y->data | (uintptr_t)a->data | (uintptr_t)(b ? b->data : NULL);

    DT_ASSERT(dt_tensor_elems(a) == elems && y->dtype == a->dtype);
    if (elems == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(y->dtype, op, err, {
        unsigned blocks = dt_cuda_blocks(state, elems, DT_CUDA_BLOCK * dt_vec<T>::N);

        if (b != NULL)
            DT_CUDA_LAUNCH((dt_flat_kernel<T, true, F>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                           (T *)y->data, (const T *)a->data, (const T *)b->data, elems, f,
                           (all & 15) == 0);
        else
            DT_CUDA_LAUNCH((dt_flat_kernel<T, false, F>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                           (T *)y->data, (const T *)a->data, (const T *)NULL, elems, f,
                           (all & 15) == 0);
    });
    return dt_cuda_launched(op, err);
}

/* table: declares the table of all CUDA ops, for the function that opens a device. */

const dt_ops *dt_cuda_ops();

#endif
