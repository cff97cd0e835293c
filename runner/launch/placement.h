/* placement: assigns GPUs to the ranks of a plan.
 *
 * The GPUs of this machine are known at once, those of other nodes after they were probed
 * (runner/node_setup/probe/probe.h). Until then nodes that should use all their GPUs are assumed to have none.
 */
#ifndef DT_RUNNER_LAUNCH_PLACEMENT_H
#define DT_RUNNER_LAUNCH_PLACEMENT_H

#include "runner/launch/preflight.h"
#include "runner/node_setup/probe/probe.h"

/* Returns the GPUs of this machine that a process may use: the driver's device files, within
 * CUDA_VISIBLE_DEVICES. */
int64_t dt_placement_gpus_here(void);

/* Assigns devices to the plan's ranks, and divides batch.total among them. report: NULL until
 * the other nodes were probed. Call again with the report. */
dt_status dt_placement_assign(dt_plan *plan, const dt_probe_report *report, dt_arena *arena,
                              dt_error *err);

/* The same, assuming that every node has this number of GPUs. */
dt_status dt_placement_imagine(dt_plan *plan, int64_t gpus, dt_arena *arena, dt_error *err);

#endif
