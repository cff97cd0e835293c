/* slurm_nodes: manages the Slurm job of a run with nodes such as "slurm:4".
 *
 * Threads    place: as dt_node_prepare, for all nodes of a run at the same time
 * Errors     those of runner/slurm/job.h; an ended job is DT_ERR_UNSUPPORTED with the reason of its end
 */
#ifndef DT_RUNNER_NODE_SETUP_SLURM_NODES_H
#define DT_RUNNER_NODE_SETUP_SLURM_NODES_H

#include "runner/node_setup/node_setup.h"

/* Resolves a name like "slurm:4#2" to its machine, "slurm:12/gpu-b". Submits the job if there is none, and waits until it
 * runs; the first node's progress shows why it waits. Returns any other name unchanged. */
dt_status dt_nodes_slurm_place(const char **node, const dt_prepare_request *request,
                               dt_arena *arena, dt_error *err);

/* Tests whether Slurm would accept the job of this plan; submits nothing. */
dt_status dt_nodes_slurm_try(const json_t *plan, int64_t nodes, dt_arena *arena, dt_error *err);

/* At the end of the run in `folder`, ends its job, if any, which releases the nodes. good: Slurm records it as completed.
 * Failures are logged. */
void dt_nodes_slurm_end(const char *folder, bool good);

#endif
