/* emulated CUDA: enough of the programming model to run this project's kernels on a CPU, thread by
 * thread, where there is no card. It checks arithmetic, indices and barriers, never speed.
 *
 * A block's threads are fibers that run in turn; each runs until it reaches a barrier of its warp
 * or block, or ends. Blocks run one after the other, each launch to its end. A barrier waits
 * for the threads that are still there, as the hardware's does. Launches that a card would refuse
 * abort. So do barriers that not all threads reach, shuffles of lanes that have ended, unordered
 * accesses of two threads (races.cc), shared memory that was not requested, addresses without the
 * alignment of an instruction, and reads of data that a copy has not written yet. Not modelled:
 * registers, clocks.
 *
 * Streams are as late as possible: their work is done when a caller waits for it, not before, so
 * that a missing wait finds no result (streams.cc). The host may not access the cards' memory
 * outside of kernels and copies: it faults, as with a card (memory.cc). There are two cards; a
 * stream must belong to the current one of the thread.
 */
#ifndef DT_EMULATED_CUDA_RUNTIME_H
#define DT_EMULATED_CUDA_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <tuple>
#include <utility>

#define __CUDACC__ 1
#define __host__
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

struct alignas(16) float4 {
    float x, y, z, w;
};

/* --- the interface of kernels */

struct dt_emulated_place {
    dim3 thread, block, block_size, grid_size;
    unsigned char *dynamic_shared;
};

extern dt_emulated_place dt_emulated; /* indices of the running thread */

#define threadIdx (dt_emulated.thread)
#define blockIdx  (dt_emulated.block)
#define blockDim  (dt_emulated.block_size)
#define gridDim   (dt_emulated.grid_size)

void dt_emulated_launch(dim3 grid, dim3 block, size_t shared_bytes,
                        struct dt_emulated_stream *stream, std::function<void()> body);
/* All threads that have not ended must reach the same barrier: that of the same line. */
void dt_emulated_block_barrier(int line);
/* All lanes of `mask`, which must be all lanes. */
void dt_emulated_warp_barrier(unsigned mask, int line);
/* Stores `mine`, waits for the other lanes, and returns the values of all 32, 64 bytes apart; valid
 * until the next call. */
const unsigned char *dt_emulated_exchange_all(const void *mine, size_t bytes, unsigned mask,
                                              int line);

/* Registers 16 bytes of this thread that are copied when a thread waits for them, not before. */
void dt_emulated_copy_16(void *shared, const void *from, bool inside);
void dt_emulated_copy_commit(void);
void dt_emulated_copy_wait(size_t left);
/* Row of 16 bytes in shared memory whose address a lane gives to ldmatrix. */
void dt_emulated_matrix_row(const void *row);

/* Arguments are evaluated at the launch. */
template <typename K, typename... A>
static inline void dt_emulated_call(dim3 grid, dim3 block, size_t shared_bytes,
                                    struct dt_emulated_stream *stream, K kernel, A... args)
{
    std::tuple<A...> held(args...);

    dt_emulated_launch(grid, block, shared_bytes, stream, [=]() { std::apply(kernel, held); });
}

#define DT_CUDA_LAUNCH(kernel, grid, block, shared, stream, ...) \
    dt_emulated_call((grid), (block), (shared), (stream),        \
                     [=](auto... words) { (kernel)(words...); }, __VA_ARGS__)
#define DT_CUDA_DYNAMIC_SHARED(name) unsigned char *name = dt_emulated.dynamic_shared

static inline void __syncthreads(int line = __builtin_LINE())
{
    dt_emulated_block_barrier(line);
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE())
{
    dt_emulated_warp_barrier(mask, line);
}

template <typename V>
static inline V dt_emulated_exchange(V mine, int from, unsigned mask, int line)
{
    const unsigned char *all = dt_emulated_exchange_all(&mine, sizeof(mine), mask, line);
    V theirs;

    memcpy(&theirs, all + (unsigned)from % 32 * 64, sizeof(theirs));
    return theirs;
}

template <typename V>
static inline V __shfl_xor_sync(unsigned mask, V value, int other, int line = __builtin_LINE())
{
    return dt_emulated_exchange(value, (int)(threadIdx.x % 32) ^ other, mask, line);
}

template <typename V>
static inline V __shfl_sync(unsigned mask, V value, int from, int line = __builtin_LINE())
{
    return dt_emulated_exchange(value, from, mask, line);
}

__attribute__((no_sanitize("thread"))) static inline int atomicMax(int *at, int value)
{
    int old = *at;

    *at = value > old ? value : old;
    return old;
}

#define __expf expf /* the C library has a __expf of its own */

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

/* --- the runtime */

typedef enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901
} cudaError_t;
typedef struct dt_emulated_stream *cudaStream_t;
typedef struct dt_emulated_event *cudaEvent_t;
typedef enum cudaMemcpyKind {
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
} cudaMemcpyKind;
enum { cudaStreamNonBlocking = 1, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
typedef enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize } cudaFuncAttribute;
typedef enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor,
    cudaDevAttrComputeCapabilityMajor,
    cudaDevAttrComputeCapabilityMinor
} cudaDeviceAttr;
typedef struct cudaDeviceProp {
    char name[256];
    int multiProcessorCount, major, minor, pciDomainID, pciBusID, pciDeviceID;
} cudaDeviceProp;

/* Work of a library call on a stream, done when its turn comes. */
void dt_emulated_enqueue(cudaStream_t stream, std::function<void()> work);

cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *out);
cudaError_t cudaGetDeviceCount(int *out);
cudaError_t cudaDriverGetVersion(int *out);
cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
/* Counts for the next launch. */
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute which, int bytes);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *highest);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t from, cudaEvent_t to);

/* A captured stream keeps its work, which can be launched any number of times. Waiting for it, or
 * allocating or freeing memory meanwhile, invalidates the capture as on a card. */
typedef struct dt_emulated_graph *cudaGraph_t;
typedef struct dt_emulated_graph *cudaGraphExec_t;
typedef struct dt_emulated_node *cudaGraphNode_t;
typedef enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 } cudaStreamCaptureMode;
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaMemset(void *to, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream);

template <typename T> static inline cudaError_t cudaMalloc(T **out, size_t bytes)
{
    return cudaMalloc((void **)out, bytes);
}
template <typename T> static inline cudaError_t cudaMallocHost(T **out, size_t bytes)
{
    return cudaMallocHost((void **)out, bytes);
}

#endif
