/* rebuild_int: what the run store lacks of a run's folder. */
#ifndef DT_REBUILD_REBUILD_INT_H
#define DT_REBUILD_REBUILD_INT_H

#include "base/arena.h"
#include "base/error.h"
#include "store/store.h"

/* adopt: checkpoints and logs that are in the run's folder, and that the history does not know of. */

/* A row for each of FOLDER/checkpoints that has none (by the name of its directory). For a history that
 * was lost: else the run resumes only from what was reported to it (resume_point.h). */
dt_status dt_adopt_checkpoints(dt_store *store, const char *run, const char *folder,
                               dt_arena *arena, dt_error *err);

/* The logs of ranks are whole as they are: else they would be cut to what the attempt's rows say. Lines
 * that a journal still holds come a second time. */
dt_status dt_adopt_logs(dt_store *store, const char *run, const char *folder, int64_t attempt,
                        dt_arena *arena, dt_error *err);

/* behind: how far the run store is behind what the run's folder says (attempt_record.h).
 *
 *   the folder's newest attempt    the store
 *   is not there                   an older copy, or a new file
 *   has ended                      has all of its that was in the journals: who wrote both was ended in
 *                                  between, and nothing but the end is missing
 *   has ended                      has less than that: an older copy
 *
 * That the store has something is on its disk before the folder says so (session.c): a power loss
 * makes no older copy of it.
 */

typedef enum dt_store_lag_kind {
    DT_STORE_LAG_NONE,
    DT_STORE_LAG_END,  /* the store knows all but that the attempt has ended */
    DT_STORE_LAG_ROWS, /* it is older, or was lost */
} dt_store_lag_kind;

typedef struct dt_store_lag {
    dt_store_lag_kind what;
    int64_t newest;    /* attempt that the folder knows; 0: none */
    int64_t stored;    /* that the store knows; 0: none */
    bool stored_ended; /* and that had ended there */
} dt_store_lag;

/* folder: runs/ID. */
dt_status dt_store_lag_find(dt_store_lag *out, dt_store *store, const char *run, const char *folder,
                            dt_arena *arena, dt_error *err);

#endif
