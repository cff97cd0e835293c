/* list: the checkpoints below a directory, newest first.
 *
 * Newest is the highest attempt, then the highest step: a run that was resumed from an older
 * checkpoint supersedes what its earlier attempt had reached.
 */
#ifndef DT_ENGINE_CHECKPOINT_LIST_H
#define DT_ENGINE_CHECKPOINT_LIST_H

#include "base/arena.h"
#include "base/error.h"
#include "engine/checkpoint/name.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_checkpoint_entry {
    const char *path;
    dt_checkpoint_name name;
    bool whole;               /* marked `complete` */
    bool marked;              /* that, or `part` */
    bool opens;               /* marked, and its index and sizes agree (data not digested) */
    const char *problem;      /* why not; "" where it opens */
    int64_t attempt;          /* -1 where it does not open */
    double valid_loss, score; /* dt_checkpoint_score */
    dt_best_by best_by;       /* whose */
    unsigned kept_for;        /* DT_CHECKPOINT_STEPS | ... */
} dt_checkpoint_entry;

/* Everything that bears a checkpoint's name; nothing where `parent` is not there. Both outputs live
 * in the arena. */
dt_status dt_checkpoint_list(dt_checkpoint_entry **out, int64_t *count, const char *parent,
                             dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
