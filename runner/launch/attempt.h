/* attempt: from a checked recipe to a supervised run, with nothing half-made on the way.
 *
 * Order      folder → recipe.yaml → attempt-N/plan.json → row in the store → supervisor.
 *            A failure before the row takes the folder away again; one after it leaves a failed
 *            attempt that says why.
 * Threads    any number of launches at once: an id is taken by making its folder
 */
#ifndef DT_RUNNER_LAUNCH_ATTEMPT_H
#define DT_RUNNER_LAUNCH_ATTEMPT_H

#include "base/strbuf.h"
#include "recipes/plan.h"
#include "recipes/reader.h"
#include "runner/launch/preflight.h"
#include "store/store.h"

/* Where a new run begins that is forked from another. */
typedef struct dt_fork {
    const dt_run *parent;   /* its recipe_json is what the recipe was changed from */
    const char *checkpoint; /* of that run: it gets a copy of its own */
    const char *name;       /* of the new run */
    double valid_loss;      /* of the checkpoint; NaN: none */
    double score;           /* the same; store.h */
    dt_budget_place at;
} dt_fork;

/* Where a run begins whose task is not to train (recipes/plan.h): flight->plan.task has the rest. */
typedef struct dt_task_start {
    const char *checkpoint;          /* it gets a copy of its own */
    const dt_strbuf *input, *target; /* what is in its files; target NULL: none */
} dt_task_start;

/* Such a run; its plan's input, target, and output where that is "", become files of its folder. */
dt_status dt_attempt_launch_task(const char **run, dt_store *store, const dt_recipe_source *source,
                                 const dt_labels *labels, const dt_task_start *start,
                                 dt_preflight *flight, dt_arena *arena, dt_error *err);

/* A new run with tags, note and group (NULL: none), from nothing or, by
 * `fork` (may be NULL), from a checkpoint with its history up to there as its past; flight->plan gets its run, attempt and directory.
 * *run lives in the arena. */
dt_status dt_attempt_launch(const char **run, dt_store *store, const dt_recipe_source *source,
                            const dt_labels *labels, const dt_fork *fork, dt_preflight *flight,
                            dt_arena *arena, dt_error *err);

/* The next attempt of an ended run, from a marked checkpoint; `at`: where it stands. run->recipe_json
 * is what the new recipe was changed from. */
dt_status dt_attempt_resume(dt_store *store, const dt_run *run, const char *checkpoint,
                            const dt_budget_place *at, dt_preflight *flight, dt_arena *arena,
                            dt_error *err);

#endif
