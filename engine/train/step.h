/* step: the parts of one optimizer step over all ranks; train.c runs them in this order.
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

    /* only for the parts below */
    double valid_targets; /* targets that count, over ranks and micro-steps */
    double loss_sum;      /* of this rank; after dt_step_agree of all */
    double mean_norm;     /* mean of the ranks' gradient norms */
    double scale;         /* loss scale of the gradients; 1 except with fp16 */
} dt_step;

/* Chooses the learning rate and counts the targets. */
dt_status dt_step_begin(dt_train_session *session, dt_step *out, dt_error *err);
/* Computes the gradients, by a forward and a backward pass of each micro-step, and reduces them over the
 * ranks. With fp16 the gradients, and their norm, are still scaled. */
dt_status dt_step_forward_backward(dt_train_session *session, dt_step *step, dt_error *err);
/* Sums over the ranks: the loss, the number of ranks that want to end the run, and the gradient norms,
 * which must agree. Decides whether the step is skipped. */
dt_status dt_step_agree(dt_train_session *session, dt_step *step, dt_error *err);
/* Clips the gradients and updates the parameters. Sets session->loss and advances session->step. */
dt_status dt_step_update(dt_train_session *session, dt_step *step, dt_error *err);
/* Advances the sampler, also after a skipped step. */
dt_status dt_step_end(dt_train_session *session, dt_error *err);

#endif
