/* resume_point: the checkpoint that the next attempt of a run resumes from.
 *
 * Only one that the history knows of. A rank tells of a save after all points before it, over one
 * channel: where the word of a save is stored, so are they. An agent that is killed takes with it
 * what its ranks had told it last; a checkpoint that was saved and never reported may then lie
 * beyond the last point, and resuming from it would leave a gap in the history for ever.
 */
#ifndef DT_FOLDER_RESUME_POINT_H
#define DT_FOLDER_RESUME_POINT_H

#include "base/arena.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_resume_point {
    const char *path; /* NULL: none */
    int64_t attempt;  /* that saved it */
    int64_t step;
    int64_t steps_total; /* of the run, as it was known then; 0: it was not */
} dt_resume_point;

/* The newest whole checkpoint below `parent` that the run's history knows of, and leads to: where a later
 * attempt started before it, it went another way (dtrun resume --from). */
dt_status dt_run_newest_checkpoint(dt_resume_point *out, dt_store *store, const char *run,
                                   const char *parent, dt_arena *arena, dt_error *err);

/* The attempt that began again before the checkpoint's step, after the one that saved it: the run has left
 * that way, and its history does not lead there. NULL: there is none. */
const dt_attempt *dt_resume_point_left(const dt_attempt *attempts, int64_t count,
                                       const dt_store_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif
#endif
