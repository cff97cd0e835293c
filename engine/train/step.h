/* step: runs one optimizer step over all ranks: micro-steps, reduction, clip, update.
 *
 * Loss       summed over tokens, then divided once by the number of targets that count in the whole step,
 *            over ranks and micro-steps; these are counted before the first forward pass
 * Samples    micro-step m of data rank r of R starts at sample (m * R + r) * sequences: the samples of a
 *            step do not depend on how it is divided
 * fp16       a step whose gradients overflow changes only the loss scale and the sampler's
 *            position (optim/scaler.h)
 * Errors     DT_ERR_RECIPE if training has diverged, DT_ERR_CORRUPT if the ranks' gradient
 *            norms differ, DT_ERR_COMM
 */
#ifndef DT_ENGINE_TRAIN_STEP_H
#define DT_ENGINE_TRAIN_STEP_H

#include "engine/train/session.h"

typedef struct dt_step {
    double learning_rate, gradient_norm;
    int64_t items;                /* number of tokens or rows */
    double host_overhead_seconds; /* spent neither in the strategy nor in a collective */
    bool skipped;                 /* fp16 overflow: session->step did not advance */
    bool stop;                    /* a rank was asked to stop */
    bool time_over;               /* a rank has reached the recipe's time limit */
} dt_step;

/* Collective. Sets session->loss, advances session->step and the sampler. */
dt_status dt_step_run(dt_train_session *session, dt_step *out, dt_error *err);

#endif
