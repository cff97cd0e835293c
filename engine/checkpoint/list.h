/* list: lists the checkpoints below a directory, newest first.
 *
 * Newest is the highest attempt, then the highest step: a run that was resumed from an older
 * checkpoint supersedes what its earlier attempt had reached.
 */
#ifndef DT_ENGINE_CHECKPOINT_LIST_H
#define DT_ENGINE_CHECKPOINT_LIST_H

#include "base/error.h"
#include "base/memory.h"
#include "engine/checkpoint/name.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_checkpoint_entry {
    const char *path;
    dt_checkpoint_name name;
    bool whole;               /* has the marker `complete` */
    bool marked;              /* has the marker `complete` or `part` */
    bool opens;               /* marked, index readable, sizes match (digests not checked) */
    const char *problem;      /* why the checkpoint does not open; otherwise "" */
    int64_t attempt;          /* attempt that saved it; -1 if it does not open */
    double valid_loss, score; /* score: dt_checkpoint_score */
    dt_best_by best_by;       /* what `score` measures */
    unsigned kept_for;        /* reasons of the save: DT_CHECKPOINT_STEPS | ... */
} dt_checkpoint_entry;

/* List every directory with a checkpoint's name; an empty list if `parent` does not exist. Both
 * outputs are in the arena. */
dt_status dt_checkpoint_list(dt_checkpoint_entry **out, int64_t *count, const char *parent,
                             dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
