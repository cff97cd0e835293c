/* resume_check: checks, before there is an attempt, whether a run can resume from a checkpoint with a recipe.
 *
 * Errors  DT_ERR_RECIPE with what does not match the checkpoint: data in which its position means something else
 *         (unless `new_data` allows them), other parameters, a model that computes something else with them
 *         (unless `new_model` allows it), another optimizer; and if every step is done
 */
#ifndef DT_RUNNER_LAUNCH_RESUME_CHECK_H
#define DT_RUNNER_LAUNCH_RESUME_CHECK_H

#include "engine/checkpoint/checkpoint.h"
#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "store/store.h"

/* flight->plan.new_data: the data may differ. *at: position in the recipe's data from which the
 * run continues. */
dt_status dt_resume_check(dt_budget_place *at, const dt_preflight *flight,
                          const dt_checkpoint *checkpoint, const dt_run *run, const dt_call *call,
                          dt_error *err);

/* Prints a note if a step has a different number of tokens than before the checkpoint, and how
 * to keep that number. Call after the ranks are final (dt_nodes_check). */
void dt_resume_note_batch(const dt_preflight *flight, const dt_checkpoint *checkpoint,
                          const dt_call *call);

#endif
