/* placement: which GPUs the ranks of a plan get.
 *
 * Of this machine it is known at once; of others when they have been asked
 * (runner/node_setup/probe/probe.h). Until then nodes that are to give all that they have are taken
 * to have none.
 */
#ifndef DT_RUNNER_LAUNCH_PLACEMENT_H
#define DT_RUNNER_LAUNCH_PLACEMENT_H

#include "runner/launch/preflight.h"
#include "runner/node_setup/probe/probe.h"

/* GPUs of this machine that a process may use: the driver's device files, within
 * CUDA_VISIBLE_DEVICES. */
int64_t dt_placement_gpus_here(void);

/* Gives the plan's ranks their devices, and divides batch.total among them. report: NULL where no other node has been asked. May be
 * called again with it. */
dt_status dt_placement_assign(dt_plan *plan, const dt_probe_report *report, dt_arena *arena,
                              dt_error *err);

/* The same where every node is taken to have so many GPUs, whatever there is. */
dt_status dt_placement_imagine(dt_plan *plan, int64_t gpus, dt_arena *arena, dt_error *err);

#endif
