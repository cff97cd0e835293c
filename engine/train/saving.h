/* saving: decides when a checkpoint is due, saves it, and reports the outcome.
 *
 * Due        every checkpoint.every steps; at the end of every checkpoint.every_epoch epochs; after
 *            an evaluation that is not worse than the best before it, if checkpoint.keep_best is above 0;
 *            at the end of the run, stopped or not. One save per step, whatever the reasons
 * Background all saves but the last: the step takes a snapshot, training continues, and a later step
 *            reports the outcome. If a save is due while another is in progress, training waits for the
 *            one in progress, so that no save is dropped. If a node lacks memory for snapshots, training
 *            waits for every save, and the log reports this at the start
 * Failure    a failed save other than the last is an event, and training continues with the previous
 *            checkpoint; the loss of a peer is always fatal
 */
#ifndef DT_ENGINE_TRAIN_SAVING_H
#define DT_ENGINE_TRAIN_SAVING_H

#include "engine/train/session.h"

/* Collective; call it once the strategy holds its state. Allocates memory for snapshots if the run
 * will save before its end. */
dt_status dt_saving_open(dt_train_session *session, dt_error *err);
void dt_saving_close(dt_train_session *session);

/* Collective; call it at the end of a step, after its evaluation. `evaluated`: valid_loss is of
 * this step. */
dt_status dt_saving_step(dt_train_session *session, bool evaluated, bool last, dt_error *err);
/* Collective; call it after evaluating the step that the run resumed from. Saves that step again if
 * it is the best. */
dt_status dt_saving_best(dt_train_session *session, dt_error *err);

#endif
