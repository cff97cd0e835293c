/* mend: a command meets runs that the run store lacks, or knows an older state of (rebuild.h).
 *
 * Where a supervisor follows the run it is left to that one, which has the store open as it was. What goes
 * wrong is reported, and changes nothing.
 */
#ifndef DT_REBUILD_RESTORE_RUNS_H
#define DT_REBUILD_RESTORE_RUNS_H

#include "store/store.h"

/* True where rows were written anew. The run that it was forked from comes first: the fork has points of it. */
bool dt_restore_run(dt_store *store, const char *run);
/* Only the run that it was forked from, for who rebuilds the run itself. */
void dt_restore_parents(dt_store *store, const char *run);
/* Every run that has a folder, in the order of their creation. */
void dt_restore_runs(dt_store *store);

#endif
