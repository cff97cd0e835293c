/* rebuild: restores the rows of a run from its folder if the run store lacks them (it was deleted while nobody
 * had it open) or has fewer than before (it was replaced by an older copy). The end of an attempt is written to
 * the folder first: if the supervisor was killed before it was stored, only the end is restored (rebuild_int.h).
 *
 * The folder holds history.json of each attempt (attempt_record.h), the recipe, the checkpoints, and the journals
 * of this machine's nodes: from these come the points, events and checkpoints of ended attempts, each once
 * (collect/replay.h). The agents of an attempt that is still running send everything that their journals hold
 * once a supervisor attaches. If events are in no journal any more, an event `gap` reports that; otherwise
 * an event `restored`. Attempts keep their numbers, so that none is started twice.
 *
 * Runs without any history.json are left as they are.
 */
#ifndef DT_REBUILD_REBUILD_H
#define DT_REBUILD_REBUILD_H

#include "base/error.h"
#include "store/store.h"

/* *needed: the folder knows more than the store. */
dt_status dt_rebuild_is_needed(bool *needed, dt_store *store, const char *run, dt_error *err);

/* Restores the rows. The caller must hold the lock of the run's supervisor; do not call in a
 * transaction. *rebuilt: something was missing. On failure the store is unchanged. */
dt_status dt_rebuild_run(bool *rebuilt, dt_store *store, const char *run, dt_error *err);

#endif
