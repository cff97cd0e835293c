/* repair: a store that lacks rows, or is damaged, gets them from elsewhere: from journals that are read again
 * (runner/supervisor/collect/replay.h), and from what can be read of the damaged file.
 *
 * Ownership, Threads, Errors    as in store.h
 */
#ifndef DT_STORE_REPAIR_H
#define DT_STORE_REPAIR_H

#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- metric.c, event.c, checkpoint.c: whether the store has a row */
/* Whether the run has the point: with this value, or as the point of an event of another time. */
dt_status dt_store_metric_has(dt_store *store, bool *has, const char *run, const dt_metric *point,
                              dt_error *err);
/* The point of the event of this time gets this value; the pyramid does not know it until dt_store_pyramid_renew. */
dt_status dt_store_metric_mend(dt_store *store, const char *run, const dt_metric *point,
                               dt_error *err);
/* Whether the run has the event of this number of the node's journal. */
dt_status dt_store_event_has(dt_store *store, bool *has, const char *run,
                             const dt_store_event *event, dt_error *err);
/* Whether the run has a checkpoint of this name, wherever its folder was then. */
dt_status dt_store_checkpoint_has(dt_store *store, bool *has, const char *run,
                                  const dt_store_checkpoint *checkpoint, dt_error *err);

/* --- salvage.c */
/* Takes what can be read of the damaged store at `from`, which is not changed, into `to`; *rows counts the rows that
 * were not there. with_numbers: into a new store, in which runs keep their numbers. The pyramid is not made
 * (dt_store_pyramid_renew). */
dt_status dt_store_salvage(int64_t *rows, dt_store *to, const char *from, bool with_numbers,
                           dt_error *err);
/* Ids of runs that lack the row of an attempt, without which no command shows them. */
dt_status dt_store_runs_incomplete(dt_store *store, const char ***ids, int64_t *count,
                                   dt_arena *arena, dt_error *err);
/* Adds rows of which only the reason says something for the attempts that such a run lacks. */
dt_status dt_store_run_complete(dt_store *store, const char *run, dt_error *err);
/* Removes what journals gave of an attempt, but for the points that a fork has of its parent; in a transaction. */
dt_status dt_store_attempt_clear(dt_store *store, const char *run, int64_t attempt, dt_error *err);
/* Makes the pyramid from the points of a run; NULL: of all. */
dt_status dt_store_pyramid_renew(dt_store *store, const char *run, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
