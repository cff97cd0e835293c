/* orphans: a run that ended while nodes could not be asked (exit code 5) may still have its ranks
 * there. Once the nodes are back they can be: `dtrun stop RUN` again.
 */
#ifndef DT_RUNNER_STOP_ORPHANS_H
#define DT_RUNNER_STOP_ORPHANS_H

#include "base/strbuf.h"
#include "runner/cli/options.h"
#include "store/store.h"

/* Ends what the run has on the nodes that have not told that nothing is left; those where that is
 * done, and those that a person vouches for (`forgiven`, names), are called released. *asked: how
 * many were lost; `left` gets the names of those that still cannot be asked, and why. Only of a run
 * that has ended: nobody else writes its rows then. */
dt_status dt_orphans_end(int64_t *asked, dt_strbuf *left, dt_store *store, const dt_run *run,
                         const dt_value *forgiven, dt_arena *arena, dt_error *err);

/* The same for what a launch or the doctor reaches anyway: the nodes `names` are asked what runs there, if a
 * run that has ended may have left something on one of them, and nothing is ended. Where nothing is left
 * the row of the run says so. A node that does not answer changes nothing. */
dt_status dt_orphans_settle(dt_store *store, const char *const *names, int64_t count,
                            dt_arena *arena, dt_error *err);

#endif
