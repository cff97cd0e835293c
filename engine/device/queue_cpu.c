#include "engine/device/queue_cpu.h"

#include <string.h>

static dt_status queue_open(dt_device *device, dt_queue **out, dt_error *err)
{
    *out = NULL;
    return DT_OK;
}

static void queue_close(dt_device *device, dt_queue *queue) {}

static dt_status event_open(dt_device *device, dt_device_event **out, dt_error *err)
{
    *out = NULL;
    return DT_OK;
}

static void event_close(dt_device *device, dt_device_event *event) {}

static dt_status record(dt_device *device, dt_device_event *event, dt_queue *queue, dt_error *err)
{
    return DT_OK;
}

static dt_status follow(dt_device *device, dt_queue *queue, dt_device_event *event, dt_error *err)
{
    return DT_OK;
}

static dt_status wait(dt_device *device, dt_device_event *event, dt_error *err)
{
    return DT_OK;
}

static dt_status copy_in(dt_device *device, dt_queue *queue, void *device_memory, const void *host,
                         size_t bytes, dt_error *err)
{
    memcpy(device_memory, host, bytes);
    return DT_OK;
}

static dt_status copy_out(dt_device *device, dt_queue *queue, void *host, const void *device_memory,
                          size_t bytes, dt_error *err)
{
    memcpy(host, device_memory, bytes);
    return DT_OK;
}

const dt_queues dt_cpu_queues = {
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
