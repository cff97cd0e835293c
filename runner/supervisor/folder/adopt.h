/* adopt: checkpoints and logs that are in the run's folder, and that the history does not know of. */
#ifndef DT_FOLDER_ADOPT_H
#define DT_FOLDER_ADOPT_H

#include "base/arena.h"
#include "base/error.h"
#include "store/store.h"

/* A row for each of FOLDER/checkpoints that has none (by the name of its directory). For a history that
 * was lost: else the run resumes only from what was reported to it (resume_point.h). */
dt_status dt_adopt_checkpoints(dt_store *store, const char *run, const char *folder,
                               dt_arena *arena, dt_error *err);

/* The logs of ranks are whole as they are: else they would be cut to what the attempt's rows say. Lines
 * that a journal still holds come a second time. */
dt_status dt_adopt_logs(dt_store *store, const char *run, const char *folder, int64_t attempt,
                        dt_error *err);

#endif
