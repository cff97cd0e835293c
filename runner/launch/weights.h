/* weights: what a new run begins from (model.from), before it is one.
 *
 * Errors  DT_ERR_RECIPE naming what does not fit
 */
#ifndef DT_RUNNER_LAUNCH_WEIGHTS_H
#define DT_RUNNER_LAUNCH_WEIGHTS_H

#include "runner/launch/preflight.h"

/* Finds the files and holds them against the recipe's model; flight->plan has them from then on. Nothing
 * where the recipe names none. */
dt_status dt_weights_preflight(dt_preflight *flight, dt_arena *arena, dt_error *err);

/* RUN/origin: config.json and the tokenizer's files that they came with, for who exports the run. The
 * folder that they lie in may go, then. */
#define DT_WEIGHTS_ORIGIN "origin"
dt_status dt_weights_keep_origin(const dt_weights_files *files, const char *run_folder,
                                 dt_arena *arena, dt_error *err);
/* Those that another run has, for one that is forked from it. */
dt_status dt_weights_copy_origin(const char *from_run_folder, const char *run_folder,
                                 dt_arena *arena, dt_error *err);

/* For the provenance: {"from": ..., "kind": ..., "files": [{"path", "bytes", "xxh3_128"}]}. New
 * reference; NULL: the run's parameters are drawn. */
json_t *dt_weights_provenance(const dt_plan *plan);

#endif
