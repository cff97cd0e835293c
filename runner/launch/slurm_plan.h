/* slurm_plan: makes the plan of a recipe whose nodes come from Slurm.
 *
 * In a job   the job's nodes by name, with their CPUs and, if the recipe leaves them out (ranks 1, gpus -1), the
 *            tasks and GPUs that the job has there
 * Elsewhere  "slurm:4#1" to "slurm:4#4", which become nodes once the job that the run submits has started
 *            (runner/node_setup/slurm_nodes.h); threads that are left out are 1 per rank, because the job must
 *            request a number
 */
#ifndef DT_RUNNER_LAUNCH_SLURM_PLAN_H
#define DT_RUNNER_LAUNCH_SLURM_PLAN_H

#include "recipes/plan/plan.h"

/* Like dt_plan_make, for any recipe. DT_ERR_RECIPE if the job does not match the recipe. */
dt_status dt_slurm_plan(dt_plan *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err);

/* True if a job must still be submitted for its nodes. */
bool dt_slurm_is_promised(const dt_plan *plan);
/* Checks whether Slurm would accept that job, without submitting it. */
dt_status dt_slurm_try(const dt_plan *plan, dt_arena *arena, dt_error *err);

#endif
