/* session_int: declares the stages of opening a session (session.c), in the order of their calls. */
#ifndef DT_ENGINE_TRAIN_SESSION_INT_H
#define DT_ENGINE_TRAIN_SESSION_INT_H

#include "engine/checkpoint/checkpoint.h"
#include "engine/train/session.h"

/* Place the rank in the mesh. DT_ERR_RECIPE or DT_ERR_UNSUPPORTED if the recipe's 'tensor' does not fit. */
dt_status dt_session_place(dt_train_session *session, int64_t rank, dt_error *err);
/* Connect the ranks that divide layers, if the model is divided. Collective. */
dt_status dt_session_open_layers(dt_train_session *session, dt_error *err);
/* Open the weights to start from. Only for a fresh start: a resumed run loads its own checkpoint. */
dt_status dt_session_open_weights(dt_train_session *session, dt_error *err);
/* Open the data. resumed: info of the checkpoint, whose tokenizer the run keeps even if the text
 * has changed; NULL: a fresh start. DT_ERR_RECIPE if the data differ from the checkpoint's, unless
 * the plan allows new data. */
dt_status dt_session_open_data(dt_train_session *session, const dt_checkpoint_info *resumed,
                               dt_error *err);
/* Check that all ranks read the same data; otherwise they would draw different samples, make
 * different numbers of collective calls, and wait for each other. On a difference all ranks fail
 * with DT_ERR_RECIPE. */
dt_status dt_session_compare_data(dt_train_session *session, dt_error *err);
/* Restore the checkpoint's parameters, moments, position in the data and best score. */
dt_status dt_session_resume(dt_train_session *session, dt_checkpoint *checkpoint, dt_error *err);
/* Load the parameters from session->weights and close it; no effect if there are none. */
dt_status dt_session_load_weights(dt_train_session *session, dt_error *err);

#endif
