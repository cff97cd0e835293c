/* repair: rebuilds a damaged history from everything that is left.
 *
 *   1 copy what can be read of the damaged file into a new one            (store/salvage.c)
 *   2 restore missing runs from their folders                             (restore_runs.h)
 *   3 add rows of unreadable pages from the journals                      (fill.h)
 *   4 check the new file, and put it in place of the damaged one, which is kept under another name
 *
 * Until step 4 the damaged file stays in place: a process that dies before it has changed nothing. If the
 * file is sound, steps 2 and 3 complete it in place.
 * Errors   DT_ERR_BUSY: a run is supervised, or another repair is running
 */
#ifndef DT_REBUILD_REPAIR_H
#define DT_REBUILD_REPAIR_H

#include "base/arena.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

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
