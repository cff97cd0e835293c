/* train: the loop of one rank, from the plan to the last checkpoint.
 *
 * Purpose    the same for every strategy: it never asks which one it has
 * Stop       SIGTERM (stop.h) ends the run after the step that is under way, or within an
 *            evaluation, with a checkpoint; before the first step without one. The ranks add up who
 *            has seen it, so that all stop after the same step. A time limit ends it likewise
 * Errors     DT_ERR_RECIPE (data, or a loss that is not finite), DT_ERR_NOMEM, DT_ERR_COMM and
 *            what the parts say; *err is required, and has been sent as `failed`. A checkpoint
 *            that cannot be saved is an event, and training continues, unless it is the last one
 */
#ifndef DT_ENGINE_TRAIN_TRAIN_H
#define DT_ENGINE_TRAIN_TRAIN_H

#include "engine/channel/events.h"
#include "recipes/plan.h"

dt_status dt_train(const dt_plan *plan, int64_t rank, dt_events *events, dt_error *err);

#endif
