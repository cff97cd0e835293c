/* attempt: creates a supervised run, or its next attempt, from a checked recipe, and generates ids of runs.
 *
 * Order      folder → recipe.yaml → attempt-N/plan.json → row in the store → supervisor.
 *            A failure before the row removes the folder again; a failure after it leaves a failed attempt
 *            with the reason.
 * Threads    any number of launches at once: creating its folder claims an id
 */
#ifndef DT_RUNNER_LAUNCH_ATTEMPT_H
#define DT_RUNNER_LAUNCH_ATTEMPT_H

#include "base/error.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "recipes/plan/plan.h"
#include "recipes/read/reader.h"
#include "runner/launch/preflight.h"
#include "store/run.h"

/* Start of a new run that is forked from another. */
typedef struct dt_fork {
    const dt_run *parent;   /* its recipe_json is the recipe before --set */
    const char *checkpoint; /* checkpoint of the parent; it is copied */
    const char *name;       /* name of the new run */
    double valid_loss;      /* validation loss of the checkpoint; NaN: none */
    double score;           /* validation score of the checkpoint (store.h); NaN: none */
    dt_budget_place resume_place;
} dt_fork;

/* Start of a run whose task is not training (recipes/plan/plan.h); flight->plan.task has the rest. */
typedef struct dt_task_start {
    const char *checkpoint;          /* it is copied; "": none, the plan has weights */
    const dt_strbuf *input, *target; /* contents of its files; target NULL: none */
} dt_task_start;

/* Launches such a run. The plan's input, target, and output if that is "", become files in its
 * folder. */
dt_status dt_attempt_launch_task(const char **run, dt_store *store, const dt_recipe_source *source,
                                 const dt_labels *labels, const dt_task_start *start,
                                 dt_preflight *flight, dt_arena *arena, dt_error *err);

/* Launches a new run with tags, note and group (NULL: none): from the start or, with `fork` (may
 * be NULL), from a checkpoint with the parent's history up to it. Sets run, attempt and
 * directory of flight->plan. *run lives in the arena. */
dt_status dt_attempt_launch(const char **run, dt_store *store, const dt_recipe_source *source,
                            const dt_labels *labels, const dt_fork *fork, dt_preflight *flight,
                            dt_arena *arena, dt_error *err);

/* Starts the next attempt of an ended run from a complete checkpoint; `resume_place`: its position in the
 * data. run->recipe_json is the recipe before --set. */
dt_status dt_attempt_resume(dt_store *store, const dt_run *run, const char *checkpoint,
                            const dt_budget_place *resume_place, dt_preflight *flight,
                            dt_arena *arena, dt_error *err);

/* run_id: generates short run ids that are easy to read.
 *
 * Six of the 31 characters a-z and 2-9 without i, l and o (taken for 1 and 0): 887 million ids, from the
 * system's random numbers. Creating its folder claims an id, which only one process can do.
 */

#define DT_RUN_ID_SIZE 7

/* Claims a new id and creates its folder runs/ID, which the caller removes if the launch fails;
 * texts live in the arena. *folder is NULL after an error: nothing was created. */
dt_status dt_run_id_take(const char **run, const char **folder, dt_arena *arena, dt_error *err);

#endif
