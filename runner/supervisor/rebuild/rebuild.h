/* rebuild: a lost or damaged history, rebuilt from the runs' folders: rows of one run (rebuild.c), of all
 * runs (restore_runs.c), and the repair of a damaged file (repair.c).
 *
 * The folder holds history.json of each attempt (attempt_record.h), the recipe, the checkpoints, and the journals
 * of this machine's nodes: from these come the points, events and checkpoints of ended attempts, each once
 * (collect/replay.h). The agents of an attempt that is still running send everything that their journals hold
 * once a supervisor attaches. If events are in no journal any more, an event `gap` reports that; otherwise
 * an event `restored`. Attempts keep their numbers, so that none is started twice.
 *
 * Runs without any history.json are left as they are.
 */
#ifndef DT_RUNNER_SUPERVISOR_REBUILD_REBUILD_H
#define DT_RUNNER_SUPERVISOR_REBUILD_REBUILD_H

#include "base/error.h"
#include "base/memory.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *needed: the folder knows more than the store. */
dt_status dt_rebuild_is_needed(bool *needed, dt_store *store, const char *run, dt_error *err);

/* Restores the rows. The caller must hold the lock of the run's supervisor; do not call in a
 * transaction. *rebuilt: something was missing. On failure the store is unchanged. */
dt_status dt_rebuild_run(bool *rebuilt, dt_store *store, const char *run, dt_error *err);

/* proof: amends the end of a run once it is verified that nothing of it is left on its nodes.
 *
 * An attempt that ends while a node cannot be asked has exit code 5, and its reason says that this could not be
 * verified. A later stop, launch or doctor, or another attempt of the run, may verify it; the node's row then
 * says "released".
 */

/* Amends exit code and reason, in the store and in the run's folder (attempt_record.h), of every
 * attempt whose nodes are all released, in that attempt or in a later one. */
dt_status dt_run_amend_end(dt_store *store, const char *run, dt_arena *arena, dt_error *err);

/* restore_runs: restores runs that the run store lacks, or knows an older state of, before a command uses it
 *
 * A run that a supervisor follows is left to that supervisor, which has the store open as it was. Problems are
 * logged, and change nothing.
 */

/* Returns true if rows were restored. Restores the run that it was forked from first, because
 * the fork has points of it. */
bool dt_restore_run(dt_store *store, const char *run);
/* Restores only the run that it was forked from; for callers that rebuild the run itself. */
void dt_restore_parents(dt_store *store, const char *run);
/* Restores every run that has a folder, in the order of their creation. */
void dt_restore_runs(dt_store *store);

/* fill: adds rows that the history lacks, from the journals in a run's folder, for attempts that have ended.
 *
 * Used to check a history, to complete it after a repair, and before a journal is removed.
 */

/* Counts rows that the journal of a node gives and that the store lacks or has with other
 * values. */
dt_status dt_fill_missing_of(int64_t *missing, dt_store *store, const char *run, int64_t attempt,
                             int64_t node, dt_error *err);
/* The same for all journals of all ended attempts of a run. */
dt_status dt_fill_missing(int64_t *missing, dt_store *store, const char *run, dt_error *err);
/* Writes these rows, each once; *filled counts them. of_damaged: the rows in the store come from
 * a damaged file; then the rows of complete journals replace them, and derived points, which are
 * not compared (replay.h), are written too. Do not call in a transaction. A run that is being
 * supervised is left alone. */
dt_status dt_fill_run(int64_t *filled, dt_store *store, const char *run, bool of_damaged,
                      dt_error *err);

/* repair: rebuilds a damaged history from everything that is left.
 *
 *   1 copy what can be read of the damaged file into a new one            (store/salvage.c)
 *   2 restore missing runs from their folders
 *   3 add rows of unreadable pages from the journals
 *   4 check the new file, and put it in place of the damaged one, which is kept under another name
 *
 * Until step 4 the damaged file stays in place: a process that dies before it has changed nothing. If the
 * file is sound, steps 2 and 3 complete it in place.
 * Errors   DT_ERR_BUSY: a run is supervised, or another repair is running
 */

/* File in the state folder, left by a repair that was interrupted at its last step. The next
 * repair takes its rows. */
#define DT_REPAIRED_FILE "store.db.repaired"

typedef struct dt_repaired {
    const char *aside;     /* path of the damaged file; NULL: it was sound */
    int64_t salvaged;      /* rows read from the damaged file */
    int64_t from_journals; /* rows that were only in the journals */
    int64_t runs;
} dt_repaired;

dt_status dt_repair_store(dt_repaired *out, dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
