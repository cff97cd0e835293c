/* node_checks: the nodes of a recipe, asked and judged: the first phase of launch, and doctor. */
#ifndef DT_RUNNER_LAUNCH_NODE_CHECKS_H
#define DT_RUNNER_LAUNCH_NODE_CHECKS_H

#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "runner/node_setup/probe/probe.h"

/* All nodes of the plan; dt_probe_release gives the report back. */
dt_status dt_nodes_probe(dt_probe_report *out, const dt_preflight *flight, bool outlive,
                         dt_arena *arena, dt_error *err);

/* Where another machine is among them: an error where one is not good (the first fault, and how
 * many more there are), the rest as notes to stderr. Threads that the recipe leaves out are then
 * each node's own cores, divided. */
dt_status dt_nodes_check(dt_preflight *flight, const char *recipe, const dt_call *call,
                         dt_error *err);

#endif
