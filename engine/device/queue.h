/* queue: runs copies and other work concurrently with a device's ops, ordered by events; and records ops
 * once, to launch them repeatedly in one call (graphs).
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

/* graph: records ops once and launches them repeatedly in one call.
 *
 * Purpose    launching a kernel costs the host some microseconds, and a step of a small model has
 *            hundreds of kernels
 * Recording  executes nothing. Between begin and end the thread may only call ops, which neither wait for
 *            the device nor allocate memory; a recording contains the addresses of tensors and the values
 *            of numbers, so whatever changes from run to run must be in device memory (ops.h: Steps,
 *            device.h)
 * CUDA       stream capture; CUDA calls of other threads meanwhile do no harm
 * Threads    the one that drives the device's ops
 * Errors     of begin and end: nothing has run, later ops run as before, and the device stays usable
 */

typedef struct dt_graph dt_graph;

typedef struct dt_graphs {
    dt_status (*begin)(dt_device *, dt_error *err);
    /* MUST be called after a successful begin, even if an op failed. *nodes: number of recorded
     * operations; *out is NULL if there are none. */
    dt_status (*end)(dt_device *, dt_graph **out, int64_t *nodes, dt_error *err);
    /* Launch after all earlier work of the device, like the ops themselves. */
    dt_status (*launch)(dt_device *, dt_graph *graph, dt_error *err);
    /* Whether the device's scratch memory that the graph uses has not moved. */
    bool (*valid)(dt_device *, const dt_graph *graph);
    void (*free)(dt_device *, dt_graph *graph); /* accepts NULL */
} dt_graphs;

#ifdef __cplusplus
}
#endif

#endif
