/* replica: holds a model on its device, the device's copy of a micro-step's batch, and the pass over it.
 *
 * ddp and fsdp have one replica, dp has one per thread. Ownership: borrows model and device; owns the
 * batch's memory. Threads: one per replica.
 */
#ifndef DT_ENGINE_REPLICA_H
#define DT_ENGINE_REPLICA_H

#include "engine/device/upload_buffer.h"
#include "engine/strategy/pass.h"
#include "engine/strategy/strategy.h"

typedef struct dt_replica {
    dt_model *model;
    dt_upload_buffer upload;  /* device copy of dropout clock, loss scale and inputs */
    const double *loss_scale; /* points to the loss scale in `upload` */
    size_t offsets[DT_INPUTS_MAX];
    int input_count;
    dt_batch batch;
    dt_pass pass;
} dt_replica;

/* Sizes come from the model's config. recorded, tells: see pass.h. */
dt_status dt_replica_open(dt_replica *out, dt_model *model, bool recorded, bool tells,
                          dt_error *err);
void dt_replica_close(dt_replica *replica); /* accepts a zeroed replica */

/* Process part `part` of `parts` of the micro-batch's samples. A part can be empty if there are
 * several; then no pass runs. */
dt_status dt_replica_forward_backward(dt_replica *replica, const dt_micro_batch *batch,
                                      int64_t part, int64_t parts, double loss_scale,
                                      double *loss_sum, dt_error *err);
dt_status dt_replica_evaluate(dt_replica *replica, const dt_micro_batch *batch, int64_t part,
                              int64_t parts, double *loss_sum, int64_t *counted, dt_error *err);

#endif
