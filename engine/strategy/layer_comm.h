/* layer_comm: a communicator for sums within a layer, by the ranks that divide it (dt_layer_peers in engine/model/model.h).
 *
 * A collective is ordered with the device's ops like an op. On the CPU it is complete when the call returns. With
 * NCCL its queue follows the ops before it, and the ops after it follow its queue; the host does not wait. Through
 * host memory (engine/comm/staged.h) the host waits for the ops before it.
 * Graphs     a collective cannot be recorded (engine/device/graph.h): ranks that divide layers record nothing
 * Threads    that of the model; the strategy's own communicator (async_comm.h) works beside it
 */
#ifndef DT_ENGINE_STRATEGY_LAYER_COMM_H
#define DT_ENGINE_STRATEGY_LAYER_COMM_H

#include "engine/comm/comm.h"
#include "engine/device/queue.h"
#include "engine/model/model.h"

typedef struct dt_layer_comm {
    dt_comm comm;
    dt_device *device;
    dt_device_event *ready, *done; /* the ops before a collective, and the collective */
    dt_layer_peers peers; /* calls this communicator; valid while the struct stays in place */
} dt_layer_comm;

/* Collective: opens a communicator `name` of the caller's group. Borrows device and events. */
dt_status dt_layer_comm_open(dt_layer_comm *out, dt_device *device, struct dt_events *events,
                             const char *name, dt_group group, dt_error *err);
void dt_layer_comm_close(dt_layer_comm *own); /* accepts a zeroed or partly opened struct */

#endif
