/* slurm_nodes: the job whose nodes a run was promised ("slurm:4" in its recipe).
 *
 * Threads    place: as dt_node_prepare, for all nodes of a run at the same time
 * Errors     runner/slurm/job.h; a job that is over is DT_ERR_UNSUPPORTED, saying how it ended
 */
#ifndef DT_RUNNER_NODE_SETUP_SLURM_NODES_H
#define DT_RUNNER_NODE_SETUP_SLURM_NODES_H

#include "runner/node_setup/node_setup.h"

/* Of a name like "slurm:4#2" the machine, as "slurm:12/gpu-b", once the job runs: it is submitted
 * where none was, and waited for, with the reason as progress of the first node. Any other name is
 * given back as it is. */
dt_status dt_nodes_slurm_place(const char **node, const dt_prepare_request *request,
                               dt_arena *arena, dt_error *err);

/* Whether Slurm would take the job that this plan needs; nothing is submitted. */
dt_status dt_nodes_slurm_try(const json_t *plan, int64_t nodes, dt_arena *arena, dt_error *err);

/* At the end of the run whose folder this is: its job gives its nodes back; nothing where it has
 * none. good: it counts as completed. What goes wrong is logged. */
void dt_nodes_slurm_end(const char *folder, bool good);

#endif
