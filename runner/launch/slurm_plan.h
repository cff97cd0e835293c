/* slurm_plan: the plan of a recipe whose nodes are Slurm's.
 *
 * In a job   its machines by name, with the CPUs and, where the recipe leaves them out (ranks 1,
 *            gpus -1), the tasks and GPUs that the job has there
 * Elsewhere  "slurm:4#1" to "slurm:4#4", which are machines once the job that the run submits has
 *            begun (runner/node_setup/slurm_nodes.h); threads left out are 1 a rank, since the job
 *            has to say how many it asks for
 */
#ifndef DT_RUNNER_LAUNCH_SLURM_PLAN_H
#define DT_RUNNER_LAUNCH_SLURM_PLAN_H

#include "recipes/plan.h"

/* As dt_plan_make, for any recipe. DT_ERR_RECIPE where the job is not what the recipe asks for. */
dt_status dt_slurm_plan(dt_plan *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err);

/* Whether its nodes have yet to be submitted for. */
bool dt_slurm_is_promised(const dt_plan *plan);
/* Whether Slurm would take that job; nothing is submitted. */
dt_status dt_slurm_try(const dt_plan *plan, dt_arena *arena, dt_error *err);

#endif
