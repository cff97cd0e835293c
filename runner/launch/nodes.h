/* nodes: what a launch does with nodes: the option --nodes, GPUs of the ranks, plans of nodes that are lent, probing
 * and its result, and the folder of a command. */
#ifndef DT_RUNNER_LAUNCH_NODES_H
#define DT_RUNNER_LAUNCH_NODES_H

#include "base/memory.h"
#include "recipes/plan/plan.h"
#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "runner/node_setup/probe/probe.h"
#include "store/run.h"

/* nodes_option: turns the value of the option --nodes into a value of the field `nodes`. */

/* Turns "gpu[01-04],big" into a list as in a recipe, in the arena; a text without a comma, a list and NULL are
 * unchanged. */
void dt_nodes_option(const char **out, const char *text, dt_arena *arena);

/* placement: assigns GPUs to the ranks of a plan.
 *
 * The GPUs of this machine are known at once, those of other nodes after they were probed
 * (runner/node_setup/probe/probe.h). Until then nodes that should use all their GPUs are assumed to have none.
 */

/* Returns the GPUs of this machine that a process may use: the driver's device files, within
 * CUDA_VISIBLE_DEVICES. */
int64_t dt_placement_gpus_here(void);

/* Assigns devices to the plan's ranks, and divides batch.total among them. report: NULL until
 * the other nodes were probed. Call again with the report. */
dt_status dt_placement_assign(dt_plan *plan, const dt_probe_report *report, dt_arena *arena,
                              dt_error *err);

/* The same, assuming that every node has this number of GPUs. */
dt_status dt_placement_imagine(dt_plan *plan, int64_t gpus, dt_arena *arena, dt_error *err);

/* plan: makes the plan of a recipe. Nodes that a transport lends ("slurm:4") come from its `expand`
 * (runner/transport/transport.h), with their cores and, if the recipe leaves them out (ranks 1, gpus -1), the ranks and
 * GPUs that the lender was asked for. Names of nodes that are yet to be lent become machines when the run prepares them
 * (runner/node_setup/place.c).
 */

/* Like dt_plan_make, for any recipe. DT_ERR_RECIPE if what is lent does not match the recipe. */
dt_status dt_nodes_plan(dt_plan *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err);

/* node_checks: probes the nodes of a recipe and judges the results; first phase of launch, and
 * doctor. */

/* Probes all nodes of the plan; release the report with dt_probe_release. */
dt_status dt_nodes_probe(dt_probe_report *out, const dt_preflight *flight, bool outlive,
                         dt_arena *arena, dt_error *err);

/* Probes the nodes if one is another machine. Returns an error if a node is unusable (the first
 * fault, and the number of others); prints other findings to stderr. Sets threads that the
 * recipe leaves out from each node's cores. */
dt_status dt_nodes_check(dt_preflight *flight, const char *recipe, const dt_call *call,
                         dt_error *err);

/* workdir: takes the folder of a command at its launch, if a node does not share it (node_setup/workdir/). */

/* Returns true if the recipe's folder is here and sent to nodes that do not share it. */
bool dt_launch_workdir_is_sent(const dt_recipe *recipe);
/* Lists the recipe's folder on a thread while nodes are probed; NULL if it is not sent. The recipe must stay. */
typedef struct dt_workdir_listing dt_workdir_listing;
dt_workdir_listing *dt_launch_workdir_begin(const dt_recipe *recipe);
void dt_launch_workdir_end(dt_workdir_listing *listing); /* waits for the thread; accepts NULL */
/* Sets flight->tree and flight->plan.tree if a probed node does not share the folder, and reports the size.
 * For a setup, which depends on the content, sets flight->plan.tree in any case. report NULL: no node gets
 * the folder. listing NULL: lists the folder now. DT_ERR_RECIPE: it is too large, or cannot be read. */
dt_status dt_launch_workdir_take(dt_preflight *flight, const dt_probe_report *report,
                                 dt_workdir_listing *listing, const dt_call *call, dt_error *err);
/* Asks the nodes of the run whether the command changed files there that this machine changed too. DT_ERR_RECIPE: names
 * them. A node that cannot be asked is not an error: it checks the same before it builds the folder. */
dt_status dt_launch_workdir_check(const dt_preflight *flight, const dt_run *run,
                                  const dt_call *call, dt_error *err);
/* Reports what differs from the folder of the run's last attempt. */
void dt_launch_workdir_compare(const dt_preflight *flight, const dt_run *run, const dt_call *call);

#endif
