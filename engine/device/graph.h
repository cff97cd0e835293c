/* graph: ops that are recorded once and given to the device in one call, again and again.
 *
 * Purpose    the host launches a kernel in some microseconds, and a step of a small model has
 *            hundreds of them
 * Recording  runs nothing. Between begin and end the thread gives ops alone, which neither wait for
 *            the device nor take memory; each keeps its tensors' places and its numbers, so that
 *            what changes from run to run lies in device memory (ops.h: Steps, upload_buffer.h)
 * CUDA       stream capture; what other threads ask of the card meanwhile does not matter
 * Threads    the one that drives the device's ops
 * Errors     of begin and end: nothing has run, the ops run when given as before, and the device is
 *            as usable as it was
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
    /* MUST follow a begin that succeeded, whatever became of the ops. *nodes: how many pieces of
     * work were recorded; *out is NULL where that is none. */
    dt_status (*end)(dt_device *, dt_graph **out, int64_t *nodes, dt_error *err);
    /* Behind what the device was given before, as the ops themselves. */
    dt_status (*launch)(dt_device *, dt_graph *graph, dt_error *err);
    /* Whether the working memory that it uses, the device's own, is still where it was. */
    bool (*valid)(dt_device *, const dt_graph *graph);
    void (*free)(dt_device *, dt_graph *graph); /* accepts NULL */
} dt_graphs;

#ifdef __cplusplus
}
#endif
#endif
