/* train: the loop of one rank, from the plan to the last checkpoint.
 *
 * Purpose    the same for every strategy: it never asks which one it has
 * Loss       summed over tokens, divided once by the tokens of the whole step, over ranks and
 *            micro-steps
 * Samples    of a step, micro-step m of rank r takes those from (m * ranks + r) * sequences: the
 *            set does not depend on how the step is cut up
 * Stop       SIGTERM is blocked by the caller, before it starts any thread, and looked for after
 *            each step; the ranks add up who has seen it, so that all stop after the same step
 * Errors     DT_ERR_RECIPE (data, or a loss that is not finite), DT_ERR_NOMEM, DT_ERR_COMM and
 *            what the parts say; *err is required, and has been sent as `failed`. A checkpoint that
 * cannot be saved is an event, and training goes on, unless it is the last one
 */
#ifndef DT_ENGINE_TRAIN_H
#define DT_ENGINE_TRAIN_H

#include "engine/events.h"
#include "recipes/plan.h"

dt_status dt_train(const dt_plan *plan, int64_t rank, dt_events *events, dt_error *err);

#endif
