/* rebuild: the rows of a run written anew from its folder, where the run store lacks them (it was deleted
 * while nobody had it open) or has fewer than there were (it was set back to an older copy). How an
 * attempt ended is kept in the folder first: where a supervisor was killed before the store had it, it is
 * written there, and nothing is missing (rebuild_int.h).
 *
 * The folder has history.json of each attempt (attempt_record.h), the recipe, the checkpoints, and the journals of this
 * machine's nodes: from these the points, events and checkpoints of attempts that have ended come back, each once
 * (collect/replay.h). Of a newest attempt that goes on, the agents tell all that their journals still hold once a
 * supervisor attaches. What is in no journal any more is reported as an event `gap`; where nothing is missing, as
 * `restored`. Attempts keep their numbers, so that none is ever begun twice.
 *
 * Runs of which no supervisor ever wrote a history.json are left as they are.
 */
#ifndef DT_REBUILD_REBUILD_H
#define DT_REBUILD_REBUILD_H

#include "base/error.h"
#include "store/store.h"

/* Whether the folder knows more than the store. */
dt_status dt_rebuild_is_needed(bool *needed, dt_store *store, const char *run, dt_error *err);

/* By who holds the lock of the run's supervisor; not in a transaction. *rebuilt: something was missing.
 * Where it fails the store is as it was. */
dt_status dt_rebuild_run(bool *rebuilt, dt_store *store, const char *run, dt_error *err);

#endif
