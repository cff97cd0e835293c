/* queue: runs copies and other work concurrently with a device's ops, and orders them by events.
 *
 * A queue processes its work in order, while the host and the other queues continue. An event
 * is a point in a queue: recorded after the work that the queue holds at that moment, reached when
 * that work is done. The ops are a queue as well: NULL as an argument.
 *
 * CPU      calls return when everything is done: queues and events are NULL, and waiting does nothing
 * CUDA     streams and events: a dt_queue * is a cudaStream_t, a dt_device_event * a cudaEvent_t
 * Threads  any; an event may only be recorded again when nothing waits for it any more
 * Errors   DT_ERR_CUDA: a failure of the device, possibly of an earlier op. The device is then
 *          unusable, and so is the process
 */
#ifndef DT_ENGINE_DEVICE_QUEUE_H
#define DT_ENGINE_DEVICE_QUEUE_H

#include "engine/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_queue dt_queue;
typedef struct dt_device_event dt_device_event;

typedef struct dt_queues {
    dt_status (*open)(dt_device *, dt_queue **out, dt_error *err);
    void (*close)(dt_device *, dt_queue *queue); /* finishes its work first; accepts NULL */
    dt_status (*event_open)(dt_device *, dt_device_event **out, dt_error *err);
    void (*event_close)(dt_device *, dt_device_event *event); /* accepts NULL */

    dt_status (*record)(dt_device *, dt_device_event *event, dt_queue *queue, dt_error *err);
    /* Make later work of `queue` wait for the event. The host does not wait. */
    dt_status (*follow)(dt_device *, dt_queue *queue, dt_device_event *event, dt_error *err);
    /* Wait on the host, without using a core. An event that was never recorded counts as reached. */
    dt_status (*wait)(dt_device *, dt_device_event *event, dt_error *err);

    /* Copies; `host` is from host_alloc, and must not be touched until the copy is done. */
    dt_status (*copy_in)(dt_device *, dt_queue *queue, void *device_memory, const void *host,
                         size_t bytes, dt_error *err);
    dt_status (*copy_out)(dt_device *, dt_queue *queue, void *host, const void *device_memory,
                          size_t bytes, dt_error *err);
} dt_queues;

#ifdef __cplusplus
}
#endif
#endif
