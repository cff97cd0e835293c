/* restore_runs: restores runs that the run store lacks, or knows an older state of, before a command uses it
 * (rebuild.h).
 *
 * A run that a supervisor follows is left to that supervisor, which has the store open as it was. Problems are
 * logged, and change nothing.
 */
#ifndef DT_REBUILD_RESTORE_RUNS_H
#define DT_REBUILD_RESTORE_RUNS_H

#include "store/store.h"

/* Returns true if rows were restored. Restores the run that it was forked from first, because
 * the fork has points of it. */
bool dt_restore_run(dt_store *store, const char *run);
/* Restores only the run that it was forked from; for callers that rebuild the run itself. */
void dt_restore_parents(dt_store *store, const char *run);
/* Restores every run that has a folder, in the order of their creation. */
void dt_restore_runs(dt_store *store);

#endif
