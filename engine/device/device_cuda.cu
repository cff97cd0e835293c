/* device_cuda: a GPU as a device: queues, graphs, memory and copies, and what its ops share. */
#include "engine/device/device_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/device/queue.h"
#include "engine/device/queue_cuda.cuh"
#include "engine/ops/cuda/cuda_int.cuh"

/* --- queues: streams and events */

static cudaEvent_t event_of(dt_device_event *event)
{
    return (cudaEvent_t)(void *)event;
}

/* Queues have a higher priority than the ops: their work is short, and later work waits for it. */
static dt_status queue_open(dt_device *device, dt_queue **out, dt_error *err)
{
    int lowest = 0, highest = 0;
    cudaStream_t stream;
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "opening a stream",
                         err));
    DT_TRY(dt_cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest),
                         "opening a stream", err));
    *out = (dt_queue *)(void *)stream;
out:
    return st;
}

static void queue_close(dt_device *device, dt_queue *queue)
{
    if (queue == NULL)
        return;
    (void)cudaSetDevice(dt_cuda_of(device)->index);
    (void)cudaStreamSynchronize(dt_cuda_stream_of(device, queue));
    (void)cudaStreamDestroy(dt_cuda_stream_of(device, queue));
}

static dt_status event_open(dt_device *device, dt_device_event **out, dt_error *err)
{
    cudaEvent_t event;
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
        "opening an event", err));
    *out = (dt_device_event *)(void *)event;
out:
    return st;
}

static void event_close(dt_device *device, dt_device_event *event)
{
    if (event != NULL)
        (void)cudaEventDestroy(event_of(event));
}

static dt_status record(dt_device *device, dt_device_event *event, dt_queue *queue, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(cudaEventRecord(event_of(event), dt_cuda_stream_of(device, queue)),
                         "recording an event", err));
out:
    return st;
}

static dt_status follow(dt_device *device, dt_queue *queue, dt_device_event *event, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(cudaStreamWaitEvent(dt_cuda_stream_of(device, queue), event_of(event), 0),
                         "waiting for an event", err));
out:
    return st;
}

static dt_status wait(dt_device *device, dt_device_event *event, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(cudaEventSynchronize(event_of(event)), "waiting for an event", err));
out:
    return st;
}

static dt_status copy_in(dt_device *device, dt_queue *queue, void *device_memory, const void *host,
                         size_t bytes, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(cudaMemcpyAsync(device_memory, host, bytes, cudaMemcpyHostToDevice,
                                         dt_cuda_stream_of(device, queue)),
                         "copy to the device", err));
out:
    return st;
}

static dt_status copy_out(dt_device *device, dt_queue *queue, void *host, const void *device_memory,
                          size_t bytes, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(cudaMemcpyAsync(host, device_memory, bytes, cudaMemcpyDeviceToHost,
                                         dt_cuda_stream_of(device, queue)),
                         "copy from the device", err));
out:
    return st;
}

const dt_queues dt_cuda_queues = {
    .open = queue_open,
    .close = queue_close,
    .event_open = event_open,
    .event_close = event_close,
    .record = record,
    .follow = follow,
    .wait = wait,
    .copy_in = copy_in,
    .copy_out = copy_out,
};

extern const dt_graphs dt_cuda_graphs;

/* --- graphs: captured streams */

struct dt_graph {
    cudaGraphExec_t exec;
    int64_t scratch_moves; /* scratch_moves of the device at the time of recording */
};

static dt_status begin(dt_device *device, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(
        cudaStreamBeginCapture(dt_cuda_of(device)->stream, cudaStreamCaptureModeThreadLocal),
        "recording ops", err));
    dt_cuda_of(device)->recording = true;
out:
    if (st != DT_OK)
        (void)cudaGetLastError(); /* clears the error for the next launch */
    return st;
}

static void free_graph(dt_device *device, dt_graph *graph)
{
    if (graph == NULL)
        return;
    (void)cudaSetDevice(dt_cuda_of(device)->index);
    if (graph->exec != NULL)
        (void)cudaGraphExecDestroy(graph->exec); /* a running graph finishes first */
    free(graph);
}

static dt_status make(dt_device *device, dt_graph **out, cudaGraph_t recorded, dt_error *err)
{
    dt_graph *made = (dt_graph *)calloc(1, sizeof(*made));
    dt_status st = DT_OK;

    if (made == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a graph");
    made->scratch_moves = dt_cuda_of(device)->scratch_moves;
    DT_TRY(dt_cuda_check(cudaGraphInstantiateWithFlags(&made->exec, recorded, 0),
                         "making a graph of recorded ops", err));
    /* Upload now: otherwise a lack of memory at the first launch would end the run. */
    DT_TRY(dt_cuda_check(cudaGraphUpload(made->exec, dt_cuda_of(device)->stream),
                         "making a graph of recorded ops", err));
    *out = made;
    made = NULL;
out:
    free_graph(device, made);
    return st;
}

static dt_status end(dt_device *device, dt_graph **out, int64_t *nodes, dt_error *err)
{
    cudaGraph_t recorded = NULL;
    size_t count = 0;
    dt_status st = DT_OK;

    dt_cuda_of(device)->recording = false;
    *out = NULL;
    *nodes = 0;
    DT_TRY(dt_cuda_check(cudaStreamEndCapture(dt_cuda_of(device)->stream, &recorded),
                         "recording ops", err));
    DT_TRY(dt_cuda_check(cudaGraphGetNodes(recorded, NULL, &count), "recording ops", err));
    if (count > 0)
        DT_TRY(make(device, out, recorded, err));
    *nodes = (int64_t)count;
out:
    (void)cudaGetLastError(); /* clears the error of a failed recording for the next launch */
    if (recorded != NULL)
        (void)cudaGraphDestroy(recorded);
    return st;
}

static dt_status launch(dt_device *device, dt_graph *graph, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(cudaGraphLaunch(graph->exec, dt_cuda_of(device)->stream),
                         "launching a graph", err));
out:
    return st;
}

static bool valid(dt_device *device, const dt_graph *graph)
{
    return graph->scratch_moves == dt_cuda_of(device)->scratch_moves;
}

const dt_graphs dt_cuda_graphs = {
    .begin = begin, .end = end, .launch = launch, .valid = valid, .free = free_graph};

#define OLDEST_MAJOR 8 /* oldest compute capability compiled (cmake/cuda.cmake) */

/* --- errors */

dt_status dt_cuda_check(cudaError_t result, const char *what, dt_error *err)
{
    if (result == cudaSuccess)
        return DT_OK;
    if (result == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError(); /* clears the error: the process can continue */
        return DT_FAIL(err, DT_ERR_NOMEM, "%s: no memory on the device", what);
    }
    return DT_FAIL(err, DT_ERR_CUDA, "%s: %s (%s)", what, cudaGetErrorString(result),
                   cudaGetErrorName(result));
}

dt_status dt_cuda_enter(dt_device *device, dt_error *err)
{
    return dt_cuda_check(cudaSetDevice(dt_cuda_of(device)->index), "selecting the GPU", err);
}

/* --- memory */

static dt_status cuda_alloc(dt_device *device, void **out, size_t bytes, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    size_t free_bytes = 0, total_bytes = 0;
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_cuda_enter(device, err));
    if (cudaMalloc(out, bytes > 0 ? bytes : 256) != cudaSuccess) {
        (void)cudaGetLastError();
        (void)cudaMemGetInfo(&free_bytes, &total_bytes);
        return DT_FAIL(err, DT_ERR_NOMEM,
                       "cannot allocate %.1f MB on GPU %d, where %.1f of %.1f MB are free: use a "
                       "smaller batch, activation checkpointing or fsdp",
                       (double)bytes / 1e6, state->index, (double)free_bytes / 1e6,
                       (double)total_bytes / 1e6);
    }
    DT_TRY(dt_cuda_check(cudaMemsetAsync(*out, 0, bytes, state->stream), "zeroing memory", err));
    /* otherwise another queue could write there before the memory is zeroed */
    DT_TRY(dt_cuda_check(cudaStreamSynchronize(state->stream), "zeroing memory", err));
out:
    return st;
}

static void cuda_free(dt_device *device, void *memory)
{
    (void)cudaSetDevice(dt_cuda_of(device)->index);
    (void)cudaFree(memory);
}

static dt_status cuda_host_alloc(dt_device *device, void **out, size_t bytes, dt_error *err)
{
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_cuda_enter(device, err));
    if (cudaMallocHost(out, bytes > 0 ? bytes : 1) != cudaSuccess) {
        (void)cudaGetLastError();
        *out = NULL;
        DT_THROW(err, DT_ERR_NOMEM,
                 "cannot pin %.1f MB of host memory for copies from and to GPU %d",
                 (double)bytes / 1e6, dt_cuda_of(device)->index);
    }
    memset(*out, 0, bytes);
out:
    return st;
}

static void cuda_host_free(dt_device *device, void *memory)
{
    if (memory != NULL) /* freeing NULL would be an error that a later launch reports */
        (void)cudaFreeHost(memory);
}

static dt_status cuda_memory_info(dt_device *device, int64_t *free_bytes, int64_t *total_bytes,
                                  dt_error *err)
{
    size_t available = 0, total = 0;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(cudaMemGetInfo(&available, &total), "querying the GPU's memory", err));
    *free_bytes = (int64_t)available;
    *total_bytes = (int64_t)total;
out:
    return st;
}

dt_status dt_cuda_scratch(void **out, dt_device *device, size_t bytes, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_status st = DT_OK;

    if (bytes > state->scratch_bytes) {
        DT_TRY(dt_cuda_check(cudaStreamSynchronize(state->stream), "working memory", err));
        (void)cudaFree(state->scratch);
        state->scratch = NULL;
        state->scratch_bytes = 0;
        state->scratch_moves++;
        DT_TRY(dt_cuda_check(cudaMalloc(&state->scratch, bytes), "working memory", err));
        state->scratch_bytes = bytes;
    }
    *out = state->scratch;
out:
    return st;
}

/* --- copies: ordered with the ops, complete on return (the caller owns the host memory) */

static dt_status cuda_copy_in(dt_device *device, void *device_memory, const void *host,
                              size_t bytes, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(
        cudaMemcpyAsync(device_memory, host, bytes, cudaMemcpyHostToDevice, state->stream),
        "copy to the device", err));
    DT_TRY(dt_cuda_check(cudaStreamSynchronize(state->stream), "copy to the device", err));
out:
    return st;
}

static dt_status cuda_copy_out(dt_device *device, void *host, const void *device_memory,
                               size_t bytes, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(
        cudaMemcpyAsync(host, device_memory, bytes, cudaMemcpyDeviceToHost, state->stream),
        "copy from the device", err));
    DT_TRY(dt_cuda_check(cudaStreamSynchronize(state->stream), "copy from the device", err));
out:
    return st;
}

static dt_status cuda_copy_from(dt_device *device, void *device_memory, dt_device *other,
                                const void *other_memory, size_t bytes, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(cudaMemcpyPeerAsync(device_memory, state->index, other_memory,
                                             dt_cuda_of(other)->index, bytes, state->stream),
                         "copy between GPUs", err));
out:
    return st;
}

static dt_status cuda_synchronize(dt_device *device, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_status st = DT_OK;
    int fault = 0;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(
        cudaMemcpyAsync(&fault, state->fault, sizeof(fault), cudaMemcpyDeviceToHost, state->stream),
        "synchronize", err));
    DT_TRY(dt_cuda_check(cudaStreamSynchronize(state->stream), "synchronize", err));
    if (fault != 0)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "token %d of the batch is outside the vocabulary: the data were prepared for "
                 "another one",
                 fault - 1);
out:
    return st;
}

/* --- opening and closing */

static void cuda_close(dt_device *device)
{
    dt_cuda_state *state = dt_cuda_of(device);

    if (state == NULL)
        return;
    (void)cudaSetDevice(state->index);
    if (state->stream != NULL)
        (void)cudaStreamSynchronize(state->stream);
    dt_cuda_attention_close(state->attention);
    dt_cuda_own_attention_close(state->own_attention);
    dt_cuda_products_close(state->products);
    (void)cudaFree(state->scratch);
    (void)cudaFree(state->fault);
    (void)cudaFreeHost(state->host_values);
    if (state->stream != NULL)
        (void)cudaStreamDestroy(state->stream);
    free(state);
    device->state = NULL;
}

static dt_status open_card(dt_device *out, int index, bool tf32, dt_error *err);

/* Check the first CUDA call of the process, which reveals an unusable driver. */
static dt_status check_driver(cudaError_t result, const char *doing, dt_error *err)
{
    if (result == cudaErrorInsufficientDriver)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "the NVIDIA driver is missing, or older than this dtrun-engine needs");
    return dt_cuda_check(result, doing, err);
}

static dt_status cuda_open_replica(dt_device *device, dt_device *out, int64_t n, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);

    return open_card(out, state->index + (int)n, state->tf32, err);
}

/* Refuse GPUs older than the compiled architectures. */
static dt_status check_age(int index, dt_error *err)
{
    cudaDeviceProp properties;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_check(cudaGetDeviceProperties(&properties, index), "opening the GPU", err));
    if (properties.major < OLDEST_MAJOR)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "%s has compute capability %d.%d, and dtrun needs %d.0 or more (A100, RTX 30)",
                 properties.name, properties.major, properties.minor, OLDEST_MAJOR);
out:
    return st;
}

static dt_status open_card(dt_device *out, int index, bool tf32, dt_error *err)
{
    dt_cuda_state *state = (dt_cuda_state *)calloc(1, sizeof(*state));
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    if (state == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for GPU %d", index);
    state->index = index;
    state->tf32 = tf32;
    out->name = "cuda";
    out->index = index;
    out->threads = 1;
    out->host_reads = false;
    out->ops = dt_cuda_ops();
    out->queues = &dt_cuda_queues;
    out->graphs = &dt_cuda_graphs;
    out->state = state;
    out->alloc = cuda_alloc;
    out->free = cuda_free;
    out->host_alloc = cuda_host_alloc;
    out->host_free = cuda_host_free;
    out->memory_info = cuda_memory_info;
    out->copy_in = cuda_copy_in;
    out->copy_out = cuda_copy_out;
    out->copy_from = cuda_copy_from;
    out->open_replica = cuda_open_replica;
    out->enter = dt_cuda_enter;
    out->synchronize = cuda_synchronize;
    out->close = cuda_close;
    DT_TRY(check_driver(cudaSetDevice(index), "opening the GPU", err));
    DT_TRY(check_age(index, err));
    DT_TRY(dt_cuda_check(
        cudaDeviceGetAttribute(&state->processors, cudaDevAttrMultiProcessorCount, index),
        "opening the GPU", err));
    DT_TRY(dt_cuda_check(cudaDeviceGetAttribute(&state->shared_bytes,
                                                cudaDevAttrMaxSharedMemoryPerMultiprocessor, index),
                         "opening the GPU", err));
    DT_TRY(dt_cuda_check(cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking),
                         "opening the GPU", err));
    DT_TRY(dt_cuda_check(cudaMalloc(&state->fault, sizeof(*state->fault)), "opening the GPU", err));
    /* on our stream: it does not synchronize with the legacy stream */
    DT_TRY(dt_cuda_check(cudaMemsetAsync(state->fault, 0, sizeof(*state->fault), state->stream),
                         "opening the GPU", err));
    DT_TRY(dt_cuda_check(
        cudaMallocHost(&state->host_values, DT_CUDA_VALUES * sizeof(*state->host_values)),
        "opening the GPU", err));
    DT_TRY(dt_cuda_products_open(&state->products, err));
out:
    if (st != DT_OK) {
        dt_error_prefix(err, "cuda:%d", index);
        cuda_close(out);
    }
    return st;
}

static dt_status count_cards(int *out, dt_error *err)
{
    cudaError_t result = cudaGetDeviceCount(out);

    if (result == cudaErrorNoDevice) {
        *out = 0;
        return DT_OK;
    }
    return check_driver(result, "counting GPUs", err);
}

static dt_status describe_card(dt_cuda_card *out, int index, dt_error *err)
{
    size_t free_bytes, total_bytes;
    cudaDeviceProp properties;
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_cuda_check(cudaSetDevice(index), "querying a GPU", err));
    DT_TRY(dt_cuda_check(cudaGetDeviceProperties(&properties, index), "querying a GPU", err));
    DT_TRY(dt_cuda_check(cudaMemGetInfo(&free_bytes, &total_bytes), "querying a GPU", err));
    memcpy(out->name, properties.name, sizeof(out->name) - 1);
    snprintf(out->pci, sizeof(out->pci), "%08x:%02x:%02x.0", (unsigned)properties.pciDomainID,
             (unsigned)properties.pciBusID, (unsigned)properties.pciDeviceID);
    out->free_bytes = (int64_t)free_bytes;
    out->total_bytes = (int64_t)total_bytes;
    out->processors = properties.multiProcessorCount;
    out->major = properties.major;
    out->minor = properties.minor;
out:
    return st;
}

extern "C" __attribute__((visibility("default")))
const dt_cuda_entry dt_cuda_entry_1 = {sizeof(dt_device), count_cards, describe_card, open_card};
