/* node_checks: probes the nodes of a recipe and judges the results; first phase of launch, and
 * doctor. */
#ifndef DT_RUNNER_LAUNCH_NODE_CHECKS_H
#define DT_RUNNER_LAUNCH_NODE_CHECKS_H

#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "runner/node_setup/probe/probe.h"

/* Probes all nodes of the plan; release the report with dt_probe_release. */
dt_status dt_nodes_probe(dt_probe_report *out, const dt_preflight *flight, bool outlive,
                         dt_arena *arena, dt_error *err);

/* Probes the nodes if one is another machine. Returns an error if a node is unusable (the first
 * fault, and the number of others); prints other findings to stderr. Sets threads that the
 * recipe leaves out from each node's cores. */
dt_status dt_nodes_check(dt_preflight *flight, const char *recipe, const dt_call *call,
                         dt_error *err);

#endif
