/* step: one optimizer step over all ranks: micro-steps, reduction, clip, update.
 *
 * Loss       summed over tokens, divided once by the targets that count in the whole step, over
 *            ranks and micro-steps, counted before the first forward pass
 * Samples    micro-step m of data rank r of R takes those from (m * R + r) * sequences: the set does
 *            not depend on how the step is cut up
 * fp16       a step whose gradients overflow changes nothing but the loss scale and the sampler's
 *            position (optim/scaler.h)
 * Errors     DT_ERR_RECIPE where training has diverged, DT_ERR_CORRUPT where the ranks' gradient
 *            norms differ, DT_ERR_COMM
 */
#ifndef DT_ENGINE_TRAIN_STEP_H
#define DT_ENGINE_TRAIN_STEP_H

#include "engine/train/session.h"

typedef struct dt_step {
    double learning_rate, gradient_norm;
    int64_t items;                /* tokens or rows */
    double host_overhead_seconds; /* spent neither in the strategy nor in a collective */
    bool skipped;                 /* fp16: session->step stands where it stood */
    bool stop;                    /* a rank was asked to stop */
    bool time_over;               /* a rank has reached the recipe's time limit */
} dt_step;

/* Collective. Sets session->loss, moves session->step and the sampler. */
dt_status dt_step_run(dt_train_session *session, dt_step *out, dt_error *err);

#endif
