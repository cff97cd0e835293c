#include "engine/device/queue_cuda.cuh"

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
