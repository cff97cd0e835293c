/* fill: adds rows that the history lacks, from the journals in a run's folder, for attempts that have ended.
 *
 * Used to check a history, to complete it after a repair, and before a journal is removed.
 */
#ifndef DT_REBUILD_FILL_H
#define DT_REBUILD_FILL_H

#include "base/arena.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
