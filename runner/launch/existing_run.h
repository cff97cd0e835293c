/* existing_run: what resume and fork begin with: the recipe of a run that exists, with --set, one of
 * its checkpoints, and the tokenizer that its text is read by.
 *
 * Errors: DT_ERR_NOT_FOUND where there is no such checkpoint, DT_ERR_USAGE, DT_ERR_RECIPE
 */
#ifndef DT_RUNNER_LAUNCH_EXISTING_RUN_H
#define DT_RUNNER_LAUNCH_EXISTING_RUN_H

#include "engine/checkpoint/checkpoint.h"
#include "recipes/origins.h"
#include "recipes/recipe.h"
#include "runner/cli/command.h"
#include "store/store.h"

/* The recipe that the run continues by, with --set on top, and where its values come from; run->recipe_json becomes what it was changed
 * from: an attempt that failed before its first step leaves it as it was. */
dt_status dt_existing_run_recipe(dt_recipe *out, dt_origins *origins, dt_store *store, dt_run *run,
                                 const dt_call *call, dt_error *err);

/* An open checkpoint of the run: the newest that is whole (which NULL), the one of a step ("400"), or
 * that of the lowest validation loss ("best"), of those that the run's history leads to (resume_point.h).
 * The caller closes it; *path lives in the arena. */
dt_status dt_existing_run_checkpoint(dt_checkpoint **out, const char **path, dt_store *store,
                                     const dt_run *run, const char *which, dt_arena *arena,
                                     dt_error *err);

/* The folder of a checkpoint: as above, "last" for the newest, or that folder itself (what has a '/'), of
 * whatever run. It was opened once: its files are whole. */
dt_status dt_existing_run_checkpoint_path(const char **path, dt_store *store, const dt_run *run,
                                          const char *which, dt_arena *arena, dt_error *err);

/* Where the file of recipe->data.tokenizer is no longer there, and --set does not name another: the
 * copy in the checkpoint (open, of the folder `path`), put into the run's folder, with a note. */
dt_status dt_existing_run_tokenizer(dt_recipe *recipe, const dt_run *run,
                                    const dt_checkpoint *checkpoint, const char *path,
                                    const dt_call *call, dt_error *err);

#endif
