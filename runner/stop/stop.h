/* stop: what `dtrun stop` and other commands do without a supervisor: they end what runs left on nodes.
 *
 * Each function prints what it did and sets the exit code: 5 if something is left, or may be.
 */
#ifndef DT_RUNNER_STOP_STOP_H
#define DT_RUNNER_STOP_STOP_H

#include "base/strbuf.h"
#include "runner/cli/command.h"
#include "runner/cli/options.h"
#include "store/run.h"

/* Stops the run whose folder `ref` names. why: the problem of the history, which is printed, and
 * returned if no folder has that name. now: without grace period. */
dt_status dt_stop_without_history(const char *ref, bool now, const dt_error *why, dt_call *call,
                                  dt_error *err);

/* The same for several runs: all are asked before it waits for one. */
dt_status dt_stop_all_without_history(const char *const *runs, int64_t count, bool now,
                                      const dt_error *why, dt_call *call, dt_error *err);

/* Stops the run that `ref` names on that node only; NULL: with --all every run, else lists them. */
dt_status dt_stop_on_node(const char *node, const char *ref, dt_call *call, dt_error *err);

/* orphans: ends ranks that may be left on nodes that could not be asked when the run ended (exit code 5), once
 * the nodes are back: `dtrun stop RUN` again.
 */

/* Ends what an ended run has on nodes that have not confirmed that nothing is left. Nodes where
 * that succeeds, and nodes in `forgiven` (names that a person vouches for), get the state
 * "released". *asked: number of such nodes; appends to `left` the names of nodes that still
 * cannot be asked, and why. Only for a run that has ended: otherwise its supervisor writes its
 * rows. */
dt_status dt_orphans_end(int64_t *asked, dt_strbuf *left, dt_store *store, const dt_run *run,
                         const dt_value *forgiven, dt_arena *arena, dt_error *err);

/* Asks the nodes `names` what runs there, if an ended run may have left something on one of
 * them; for a launch or the doctor, which connect to them anyway. Ends nothing. If nothing is
 * left, the row of the run says so. A node that does not answer changes nothing. */
dt_status dt_orphans_settle(dt_store *store, const char *const *names, int64_t count,
                            dt_arena *arena, dt_error *err);

#endif
