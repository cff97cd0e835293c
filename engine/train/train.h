/* train: runs the training loop of one rank, from the plan to the last checkpoint.
 *
 * Purpose    the same for every strategy: it never asks which one it has
 * Stop       after SIGTERM (engine/channel/events.h) the run saves a checkpoint and ends after the
 *            current step or within an evaluation; before the first step it ends without a checkpoint.
 *            The ranks sum up how many have seen the signal, so that all stop after the same step. A time limit works likewise
 * Errors     DT_ERR_RECIPE (data, or a loss that is not finite), DT_ERR_NOMEM, DT_ERR_COMM and the
 *            errors of the parts; *err is required, and has been sent as `failed`. A checkpoint
 *            that cannot be saved is an event, and training continues, unless it is the last one
 */
#ifndef DT_ENGINE_TRAIN_TRAIN_H
#define DT_ENGINE_TRAIN_TRAIN_H

#include "engine/channel/events.h"
#include "recipes/plan/plan.h"

dt_status dt_train(const dt_plan *plan, int64_t rank, dt_events *events, dt_error *err);

#endif
