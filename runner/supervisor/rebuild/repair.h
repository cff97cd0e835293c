/* repair: a damaged history becomes a sound one, of all that is left.
 *
 *   1 what can be read of the damaged file goes into a new one            (store/salvage.c)
 *   2 runs that it then lacks come back from their folders                (restore_runs.h)
 *   3 rows that are in no page that can be read, from the journals        (fill.h)
 *   4 the new file is checked, and takes the place of the damaged one, which is kept under another name
 *
 * Until step 4 the damaged file is where it was: who dies before it has changed nothing. Where the file is sound, steps
 * 2 and 3 complete it where it is.
 * Errors   DT_ERR_BUSY: a run is supervised, or somebody repairs already
 */
#ifndef DT_REBUILD_REPAIR_H
#define DT_REBUILD_REPAIR_H

#include "base/arena.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the state folder: left where a repair was ended at its last step. The next repair takes its rows. */
#define DT_REPAIRED_FILE "store.db.repaired"

typedef struct dt_repaired {
    const char *aside;     /* where the damaged file is; NULL: it was sound */
    int64_t salvaged;      /* rows that could be read of it */
    int64_t from_journals; /* rows that only the journals had */
    int64_t runs;
} dt_repaired;

dt_status dt_repair_store(dt_repaired *out, dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
