/* Parts of a session's opening (session.c), in the order in which they are called. */
#ifndef DT_ENGINE_TRAIN_SESSION_INT_H
#define DT_ENGINE_TRAIN_SESSION_INT_H

#include "engine/checkpoint/checkpoint.h"
#include "engine/train/session.h"

/* A run that continues has its own: only a fresh start reads what it was launched from. */
dt_status dt_session_open_weights(dt_train_session *session, dt_error *err);
/* A resumed run keeps the tokenizer of its checkpoint, whatever the text has become. resumed NULL: a fresh
 * start. DT_ERR_RECIPE where the data are others than the checkpoint's, unless the plan wants that. */
dt_status dt_session_open_data(dt_train_session *session, const dt_checkpoint_info *resumed,
                               dt_error *err);
/* Ranks whose files differ would draw other samples, and take part in another number of collectives: the
 * others would wait for them. All of them fail, DT_ERR_RECIPE. */
dt_status dt_session_compare_data(dt_train_session *session, dt_error *err);
/* The checkpoint's parameters, moments, place in the data and best losses. */
dt_status dt_session_resume(dt_train_session *session, dt_checkpoint *checkpoint, dt_error *err);
/* The parameters of the weights that were opened, which are closed then; nothing where there are none. */
dt_status dt_session_load_weights(dt_train_session *session, dt_error *err);

#endif
