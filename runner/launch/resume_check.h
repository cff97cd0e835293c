/* resume_check: whether a run can resume from a checkpoint by a recipe, before there is an attempt.
 *
 * Errors  DT_ERR_RECIPE with what the checkpoint cannot take: data in which its position means
 *         something else (unless `new_data` allows them), other parameters, a model that computes
 *         something else with them (unless `new_model` allows it), another optimizer's moments; and where
 *         every step is done
 */
#ifndef DT_RUNNER_LAUNCH_RESUME_CHECK_H
#define DT_RUNNER_LAUNCH_RESUME_CHECK_H

#include "engine/checkpoint/checkpoint.h"
#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "store/store.h"

/* flight->plan.new_data: whether the data may be others. *at: where the run continues, in the data
 * that the recipe names now. */
dt_status dt_resume_check(dt_budget_place *at, const dt_preflight *flight,
                          const dt_checkpoint *checkpoint, const dt_run *run, const dt_call *call,
                          dt_error *err);

/* Says so if a step has another number of tokens than the steps before the checkpoint, and how to keep
 * that number. Call it once the ranks are final (after dt_nodes_check). */
void dt_resume_note_batch(const dt_preflight *flight, const dt_checkpoint *checkpoint,
                          const dt_call *call);

#endif
