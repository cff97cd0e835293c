/* saving: when a checkpoint is due, why, and what comes of it.
 *
 * Due        every checkpoint.every steps; at the end of every checkpoint.every_epoch epochs; after
 *            an evaluation as good as the best before it, where checkpoint.keep_best is above 0;
 *            at the end of the run, stopped or not. One save a step, whatever the reasons
 * Background of all but the last, which nothing could run beside: a step that saves takes a
 *            snapshot, and a later step tells what came of it. One that is due while another is
 *            under way waits for it: what the recipe asks for is saved. Where a node has no memory
 *            for snapshots, every save is waited for, and the log says so at the start
 * Failure    of any but the last is an event, and training continues with the older checkpoint;
 *            what no save survives is the loss of a peer
 */
#ifndef DT_ENGINE_TRAIN_SAVING_H
#define DT_ENGINE_TRAIN_SAVING_H

#include "engine/train/session.h"

/* Collective, once the strategy holds its state: takes memory for snapshots where the run will
 * save before its end. */
dt_status dt_saving_open(dt_train_session *session, dt_error *err);
void dt_saving_close(dt_train_session *session);

/* At the end of a step, after its evaluation. Collective. `evaluated`: valid_loss is of this
 * step. */
dt_status dt_saving_step(dt_train_session *session, bool evaluated, bool last, dt_error *err);
/* After an evaluation of the step that the run resumes from: saved again where it is the best.
 * Collective. */
dt_status dt_saving_best(dt_train_session *session, dt_error *err);

#endif
