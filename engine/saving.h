/* saving: when a checkpoint is due, why, and what comes of it.
 *
 * Due        every checkpoint.every steps; at the end of every checkpoint.every_epoch epochs; after
 *            an evaluation as good as the best so far, where checkpoint.keep_best is above 0;
 *            at the end of the run, stopped or not. One save a step, whatever the reasons
 * Failure    of any but the last is an event, and training goes on with the older checkpoint; what
 *            no save survives is the loss of a peer
 */
#ifndef DT_ENGINE_SAVING_H
#define DT_ENGINE_SAVING_H

#include "engine/session.h"

/* At the end of a step, after its evaluation. Collective. `evaluated`: valid_loss is of this
 * step. */
dt_status dt_saving_step(dt_session *session, bool evaluated, bool last, dt_error *err);

#endif
