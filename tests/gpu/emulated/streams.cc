/* Streams that do nothing until a caller waits for them, events, captured graphs, the two cards. */
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "emulator.h"

#define CARDS 2

namespace
{

/* Work of a stream; item i, counted from 0, is at the front once `done` is i. */
struct line {
    std::deque<std::function<void()>> items;
    uint64_t given, done;
};

std::set<cudaStream_t> streams;

/* The stream that this thread captures, if any. */
struct capture {
    cudaStream_t stream;
    std::vector<std::function<void()>> items;
    bool spoiled;
};

thread_local capture captured;
thread_local cudaError_t last_error;

void run_to(line *at, uint64_t count)
{
    while (at->done < count) {
        std::function<void()> work = std::move(at->items.front());

        at->items.pop_front();
        at->done++;
        work();
    }
}

} // namespace

struct dt_emulated_stream {
    int device;
    std::shared_ptr<line> held;
};

struct dt_emulated_event {
    std::shared_ptr<line> held; /* stream in which it was recorded; none: never */
    uint64_t count;             /* the event is reached when this many items are done */
};

int dt_emulated_captures_refused;
std::recursive_mutex dt_emulated_lock;
thread_local int dt_emulated_device;

void dt_emulated_drain(void)
{
    for (cudaStream_t stream : streams)
        run_to(stream->held.get(), stream->held->given);
}

void dt_emulated_enqueue(cudaStream_t stream, std::function<void()> work)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    if (stream == NULL) {
        if (dt_emulated_spoil())
            return;
        dt_emulated_drain();
        work();
        return;
    }
    if (stream->device != dt_emulated_device)
        dt_emulated_refuse("a stream of a card that the thread has not turned to");
    if (stream == captured.stream) {
        captured.items.push_back(std::move(work));
        return;
    }
    stream->held->items.push_back(std::move(work));
    stream->held->given++;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    *out = new dt_emulated_stream{dt_emulated_device, std::make_shared<line>()};
    streams.insert(*out);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(out, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *highest)
{
    *lowest = 0;
    *highest = -1;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    std::shared_ptr<line> before = event->held;
    uint64_t count = event->count;

    if (stream == captured.stream && dt_emulated_spoil())
        return dt_emulated_fail(cudaErrorStreamCaptureUnsupported);
    if (before != nullptr)
        dt_emulated_enqueue(stream, [=]() { run_to(before.get(), count); });
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    if ((stream == NULL || stream == captured.stream) && dt_emulated_spoil())
        return dt_emulated_fail(cudaErrorStreamCaptureUnsupported);
    if (stream == NULL)
        dt_emulated_drain();
    else
        run_to(stream->held.get(), stream->held->given);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    cudaStreamSynchronize(stream);
    streams.erase(stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    *out = new dt_emulated_event{nullptr, 0};
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
    return cudaEventCreate(out);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    if (stream == captured.stream && dt_emulated_spoil()) /* this project captures no such work */
        return dt_emulated_fail(cudaErrorStreamCaptureUnsupported);
    event->held = stream->held;
    event->count = stream->held->given;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    if (event->held != nullptr)
        run_to(event->held.get(), event->count);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t, cudaEvent_t)
{
    *out = 1.0f;
    return cudaSuccess;
}

/* --- graphs */

struct dt_emulated_graph {
    std::vector<std::function<void()>> items;
};

bool dt_emulated_spoil(void)
{
    captured.spoiled = captured.stream != NULL;
    return captured.spoiled;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    if (dt_emulated_captures_refused > 0) {
        dt_emulated_captures_refused--;
        return dt_emulated_fail(cudaErrorStreamCaptureUnsupported);
    }
    if (captured.stream != NULL)
        return dt_emulated_fail(cudaErrorStreamCaptureUnsupported);
    captured = {stream, {}, false};
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    bool spoiled = captured.spoiled;

    *out = NULL;
    if (captured.stream != stream)
        return dt_emulated_fail(cudaErrorInvalidValue);
    if (!spoiled)
        *out = new dt_emulated_graph{std::move(captured.items)};
    captured = {};
    return spoiled ? dt_emulated_fail(cudaErrorStreamCaptureInvalidated) : cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *, size_t *count)
{
    *count = graph->items.size();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long)
{
    *out = new dt_emulated_graph{graph->items};
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    for (const auto &item : graph->items)
        dt_emulated_enqueue(stream, item);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

/* --- cards */

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= CARDS)
        return dt_emulated_fail(cudaErrorInvalidDevice);
    dt_emulated_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *out)
{
    *out = dt_emulated_device;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *out)
{
    *out = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *out)
{
    *out = CARDS;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr which, int)
{
    switch (which) {
    case cudaDevAttrComputeCapabilityMajor:
        *out = 9;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *out = 0;
        break;
    case cudaDevAttrMultiProcessorCount:
        *out = 3; /* few multiprocessors: grids then loop, and stripes are uneven */
        break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *out = 200 * 1024; /* less than sm_90 has: two blocks of the limit in emulator.cc */
        break;
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int)
{
    memset(out, 0, sizeof(*out));
    strcpy(out->name, "emulated");
    out->major = 9;
    return cudaSuccess;
}

cudaError_t dt_emulated_fail(cudaError_t error)
{
    last_error = error;
    return error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t)
{
    return "emulated";
}

const char *cudaGetErrorName(cudaError_t)
{
    return "emulated";
}
