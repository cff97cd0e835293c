/* resume_point: finds the checkpoint that the next attempt of a run resumes from.
 *
 * Only a checkpoint that the history knows is used. A rank reports a save after all earlier points, over one
 * channel: if the report of a save is stored, so are those points. An agent that is killed loses the last
 * reports of its ranks; a checkpoint that was saved but never reported may then lie after the last point,
 * and resuming from it would leave a permanent gap in the history.
 */
#ifndef DT_FOLDER_RESUME_POINT_H
#define DT_FOLDER_RESUME_POINT_H

#include "base/memory.h"
#include "store/event.h"
#include "store/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_resume_point {
    const char *path;
    int64_t attempt; /* attempt that saved it */
    int64_t step;
    int64_t steps_total; /* total steps of the run as known at that time; 0: unknown */
} dt_resume_point;

/* Finds the newest complete checkpoint below `parent` that the run's history knows and that is
 * on the run's current branch: if a later attempt started before its step (dtrun resume --from),
 * it is not. */
dt_status dt_run_newest_checkpoint(dt_resume_point *out, dt_store *store, const char *run,
                                   const char *parent, dt_arena *arena, dt_error *err);

/* Finds a checkpoint of a command's program that is on the current branch: the one of `step`, or the newest (-1). Its
 * path is that on the node of rank 0. many: there are several nodes; then one that was brought to this machine, in
 * runs/ID/saved, is preferred, since the other nodes may need it. out->path: NULL if there is none. */
dt_status dt_run_program_checkpoint(dt_resume_point *out, dt_store *store, const char *run,
                                    int64_t step, bool many, dt_arena *arena, dt_error *err);

/* Returns the path of the copy on this machine of a checkpoint that a command's program saved on another one; without
 * a copy, or for other checkpoints, that of the row. */
const char *dt_run_checkpoint_here(const char *run, const dt_store_checkpoint *checkpoint,
                                   dt_arena *arena);

/* Returns the attempt that restarted before the checkpoint's step, after the attempt that saved
 * it, so that the run can no longer resume from the checkpoint. NULL if there is none. */
const dt_attempt *dt_resume_point_left(const dt_attempt *attempts, int64_t count,
                                       const dt_store_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif
#endif
