/* graph: records ops once and launches them repeatedly in one call.
 *
 * Purpose    launching a kernel costs the host some microseconds, and a step of a small model has
 *            hundreds of kernels
 * Recording  executes nothing. Between begin and end the thread may only call ops, which neither wait for
 *            the device nor allocate memory; a recording contains the addresses of tensors and the values
 *            of numbers, so whatever changes from run to run must be in device memory (ops.h: Steps,
 *            upload_buffer.h)
 * CUDA       stream capture; CUDA calls of other threads meanwhile do no harm
 * Threads    the one that drives the device's ops
 * Errors     of begin and end: nothing has run, later ops run as before, and the device stays usable
 */
#ifndef DT_ENGINE_DEVICE_GRAPH_H
#define DT_ENGINE_DEVICE_GRAPH_H

#include "engine/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

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
