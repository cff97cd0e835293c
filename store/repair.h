/* repair: restores missing rows of a store from journals (runner/supervisor/collect/replay.h), and from the readable
 * part of a damaged file.
 *
 * Ownership, Threads, Errors    as in store.h
 */
#ifndef DT_STORE_REPAIR_H
#define DT_STORE_REPAIR_H

#include "store/curve.h"
#include "store/event.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- metric.c, event.c: whether the store has a row */
/* Sets *has if the run has the point with this value, or has the point from an event of another time. */
dt_status dt_store_metric_has(dt_store *store, bool *has, const char *run, const dt_metric *point,
                              dt_error *err);
/* Sets the value of the point if it is from the event of this time. Call dt_store_pyramid_renew afterwards. */
dt_status dt_store_metric_mend(dt_store *store, const char *run, const dt_metric *point,
                               dt_error *err);
/* Sets *has if the run has the event with this number of the node's journal. */
dt_status dt_store_event_has(dt_store *store, bool *has, const char *run,
                             const dt_store_event *event, dt_error *err);
/* Sets *has if the run has a checkpoint of this name, in any folder. */
dt_status dt_store_checkpoint_has(dt_store *store, bool *has, const char *run,
                                  const dt_store_checkpoint *checkpoint, dt_error *err);

/* --- salvage.c */
/* Copies the readable rows of the damaged store at `from`, which is not changed, into `to`; *rows counts the added
 * rows. with_numbers: `to` is new, and runs keep their numbers. Does not build the pyramid
 * (dt_store_pyramid_renew). */
dt_status dt_store_salvage(int64_t *rows, dt_store *to, const char *from, bool with_numbers,
                           dt_error *err);
/* Lists the ids of runs that lack the row of an attempt; commands do not show such runs. */
dt_status dt_store_runs_incomplete(dt_store *store, const char ***ids, int64_t *count,
                                   dt_arena *arena, dt_error *err);
/* Adds placeholder rows, with only a reason, for the missing attempts of such a run. */
dt_status dt_store_run_complete(dt_store *store, const char *run, dt_error *err);
/* Removes the rows of an attempt that came from journals, except the points that a fork copied from its parent; in a
 * transaction. */
dt_status dt_store_attempt_clear(dt_store *store, const char *run, int64_t attempt, dt_error *err);
/* Rebuilds the pyramid from the points of a run; NULL: of all runs. */
dt_status dt_store_pyramid_renew(dt_store *store, const char *run, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
