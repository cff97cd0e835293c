/* weights: finds and checks the files from which a new run starts (model.from).
 *
 * Errors  DT_ERR_RECIPE naming what does not fit
 */
#ifndef DT_RUNNER_LAUNCH_WEIGHTS_H
#define DT_RUNNER_LAUNCH_WEIGHTS_H

#include "runner/launch/preflight.h"

/* Finds the files and checks them against the recipe's model; flight->plan then has them. Does
 * nothing if the recipe names none. */
dt_status dt_weights_preflight(dt_preflight *flight, dt_arena *arena, dt_error *err);

/* Folder RUN/origin, for exports of the run: config.json and generation_config.json of the weights, and the files of
 * the tokenizer: those next to the recipe's tokenizer.json, else those that came with the weights. Then the original
 * folders may be removed. recipe: with data.tokenizer as written, not the copy in the cache. */
#define DT_WEIGHTS_ORIGIN "origin"
dt_status dt_weights_keep_origin(const dt_weights_files *files, const dt_recipe *recipe,
                                 const char *run_folder, dt_arena *arena, dt_error *err);
/* Copies the folder of the run that this run was forked from. */
dt_status dt_weights_copy_origin(const char *from_run_folder, const char *run_folder,
                                 dt_arena *arena, dt_error *err);

/* Returns {"from": ..., "kind": ..., "files": [{"path", "bytes", "xxh3_128"}]} for the
 * provenance. New reference; NULL: parameters are initialized randomly. */
json_t *dt_weights_provenance(const dt_plan *plan);

#endif
