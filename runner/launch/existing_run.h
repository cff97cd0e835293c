/* existing_run: reads what resume and fork start from: the recipe of an existing run with --set, one of its
 * checkpoints, and its tokenizer. Checks that training can continue from them.
 *
 * Errors: DT_ERR_NOT_FOUND if there is no such checkpoint, DT_ERR_USAGE, DT_ERR_RECIPE
 */
#ifndef DT_RUNNER_LAUNCH_EXISTING_RUN_H
#define DT_RUNNER_LAUNCH_EXISTING_RUN_H

#include "engine/checkpoint/checkpoint.h"
#include "recipes/fields/recipe.h"
#include "recipes/read/origins.h"
#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "store/store.h"

/* Options that dt_existing_run_preflight reads. */
#define DT_EXISTING_RUN_OPTIONS                                                              \
    {.name = "new-data",                                                                     \
     .kind = DT_OPTION_FLAG,                                                                 \
     .help = "allow data that differ from the checkpoint's; they start from the beginning"}, \
    {                                                                                        \
        .name = "new-model", .kind = DT_OPTION_FLAG,                                         \
        .help = "allow a model that computes something else with the same parameters"        \
    }

/* Reads the recipe that the run continues with, applies --set, and returns the origins of its
 * values. run->recipe_json becomes the recipe before --set; an attempt that failed before its
 * first step leaves it unchanged. */
dt_status dt_existing_run_recipe(dt_recipe *out, dt_origins *origins, dt_store *store, dt_run *run,
                                 const dt_call *call, dt_error *err);

/* Opens a checkpoint of the run: the newest complete one (which NULL), that of a step ("400"),
 * or that with the lowest validation loss ("best"), among those on the run's current branch
 * (resume_point.h). The caller closes it; *path lives in the arena. */
dt_status dt_existing_run_checkpoint(dt_checkpoint **out, const char **path, dt_store *store,
                                     const dt_run *run, const char *which, dt_arena *arena,
                                     dt_error *err);

/* Returns the folder of a checkpoint: as above, "last" for the newest, or a folder (a text with
 * a '/') of any run. The checkpoint was opened once, so its files are complete. */
dt_status dt_existing_run_checkpoint_path(const char **path, dt_store *store, const dt_run *run,
                                          const char *which, dt_arena *arena, dt_error *err);

/* Checks everything before the attempt that continues from the open checkpoint in the folder
 * `path`: preflight.h, resume_check.h and node_checks.h. *at: position in the data. If the file of
 * recipe->data.tokenizer is missing and --set does not name another, copies the tokenizer of the
 * checkpoint into the run's folder, with a note. `origins` must outlive *flight. */
dt_status dt_existing_run_preflight(dt_preflight *flight, dt_budget_place *at, dt_recipe *recipe,
                                    const dt_origins *origins, const dt_run *run,
                                    const dt_checkpoint *checkpoint, const char *path,
                                    const dt_call *call, dt_error *err);

#endif
