/* workdir: takes the folder of a command at its launch, if a node does not share it (node_setup/workdir/). */
#ifndef DT_RUNNER_LAUNCH_WORKDIR_H
#define DT_RUNNER_LAUNCH_WORKDIR_H

#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "runner/node_setup/probe/probe.h"
#include "store/store.h"

/* Returns true if the recipe's folder is here and sent to nodes that do not share it. */
bool dt_launch_workdir_is_sent(const dt_recipe *recipe);
/* Sets flight->tree and flight->plan.tree if a probed node does not share the folder, and reports the size. For a
 * setup, which depends on the content, sets flight->plan.tree in any case. report NULL: no node gets the folder. DT_ERR_RECIPE: it is too large, or cannot be read. */
dt_status dt_launch_workdir_take(dt_preflight *flight, const dt_probe_report *report,
                                 const dt_call *call, dt_error *err);
/* Asks the nodes of the run whether the command changed files there that this machine changed too. DT_ERR_RECIPE: names
 * them. A node that cannot be asked is not an error: it checks the same before it builds the folder. */
dt_status dt_launch_workdir_check(const dt_preflight *flight, const dt_run *run,
                                  const dt_call *call, dt_error *err);
/* Reports what differs from the folder of the run's last attempt. */
void dt_launch_workdir_compare(const dt_preflight *flight, const dt_run *run, const dt_call *call);

#endif
