/* queue: what a device does beside its ops, and how one waits for the other.
 *
 * A queue does what it is given, in order, while the host and the other queues continue. An event
 * is a place in a queue: recorded behind what the queue holds at that moment, reached when all of
 * that is done. The ops are a queue as well: the one that is given as NULL.
 *
 * CPU      everything is done when a call returns: queues and events are NULL, waiting is nothing
 * CUDA     streams and events: a dt_queue * is a cudaStream_t, a dt_device_event * a cudaEvent_t
 * Threads  any; an event is recorded again only when nobody waits for it any more
 * Errors   DT_ERR_CUDA: what the device has failed at, which may be an earlier op. It is then
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
    void (*close)(dt_device *, dt_queue *queue); /* what it holds is done first; accepts NULL */
    dt_status (*event_open)(dt_device *, dt_device_event **out, dt_error *err);
    void (*event_close)(dt_device *, dt_device_event *event); /* accepts NULL */

    dt_status (*record)(dt_device *, dt_device_event *event, dt_queue *queue, dt_error *err);
    /* What `queue` is given from here on waits for the event. The host does not. */
    dt_status (*follow)(dt_device *, dt_queue *queue, dt_device_event *event, dt_error *err);
    /* The host waits, without taking a core's time. An event that was never recorded is reached. */
    dt_status (*wait)(dt_device *, dt_device_event *event, dt_error *err);

    /* The host's side is of host_alloc, and left alone until the copy is done. */
    dt_status (*copy_in)(dt_device *, dt_queue *queue, void *device_memory, const void *host,
                         size_t bytes, dt_error *err);
    dt_status (*copy_out)(dt_device *, dt_queue *queue, void *host, const void *device_memory,
                          size_t bytes, dt_error *err);
} dt_queues;

#ifdef __cplusplus
}
#endif
#endif
