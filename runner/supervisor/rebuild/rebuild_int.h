/* rebuild_int: declares how the rebuild finds what the run store lacks of a run's folder. */
#ifndef DT_REBUILD_REBUILD_INT_H
#define DT_REBUILD_REBUILD_INT_H

#include "base/arena.h"
#include "base/error.h"
#include "store/store.h"

/* adopt: adds checkpoints and logs of the run's folder that the history does not know. */

/* Adds a row for each checkpoint in FOLDER/checkpoints that has none (compared by directory
 * name). For a lost history only: otherwise the run resumes only from reported checkpoints
 * (resume_point.h). */
dt_status dt_adopt_checkpoints(dt_store *store, const char *run, const char *folder,
                               dt_arena *arena, dt_error *err);

/* Sets the stored lengths of the rank logs to their file sizes, so that they are not truncated.
 * Lines that a journal still holds are added a second time. */
dt_status dt_adopt_logs(dt_store *store, const char *run, const char *folder, int64_t attempt,
                        dt_arena *arena, dt_error *err);

/* store_lag: finds how far the run store is behind the run's folder (attempt_record.h).
 *
 *   the folder's newest attempt    the store
 *   is missing in the store        is an older copy, or a new file
 *   has ended                      has everything of it from the journals: the supervisor was killed between
 *                                  the two writes, and only the end is missing
 *   has ended                      has less than that: an older copy
 *
 * The store is synced before the folder's record is written (session.c), so a power loss does not make
 * the store look like an older copy.
 */

typedef enum dt_store_lag_kind {
    DT_STORE_LAG_NONE,
    DT_STORE_LAG_END,  /* only the end of the attempt is missing in the store */
    DT_STORE_LAG_ROWS, /* the store is an older copy, or was lost */
} dt_store_lag_kind;

typedef struct dt_store_lag {
    dt_store_lag_kind what;
    int64_t newest;    /* newest attempt in the folder; 0: none */
    int64_t stored;    /* newest attempt in the store; 0: none */
    bool stored_ended; /* that attempt has ended in the store */
} dt_store_lag;

/* folder: runs/ID. */
dt_status dt_store_lag_find(dt_store_lag *out, dt_store *store, const char *run, const char *folder,
                            dt_arena *arena, dt_error *err);

#endif
