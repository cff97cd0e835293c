/* from_checkpoint: runs an engine command on a run's checkpoint, with the options of the dtrun command.
 *
 * The dtrun command has --checkpoint (STEP, best or a folder), and the same name as the engine's command. */
#ifndef DT_LAUNCH_FROM_CHECKPOINT_H
#define DT_LAUNCH_FROM_CHECKPOINT_H

#include "base/json.h"
#include "recipes/fields/recipe.h"
#include "runner/cli/command.h"
#include "store/store.h"

/* Splits RUN@WHICH; run names contain no '@'. Without '@', *which is the value of --checkpoint,
 * or NULL. DT_ERR_USAGE if both are given. option: the command has --checkpoint. */
dt_status dt_from_checkpoint_ref(const char **run, const char **which, const char *ref, bool option,
                                 const dt_call *call, dt_error *err);

/* Returns the folder of that checkpoint, or of the newest if `which` is NULL. DT_ERR_NOT_FOUND. */
dt_status dt_from_checkpoint_find(const char **path, dt_store *store, const dt_run *run,
                                  const char *which, const dt_call *call, dt_error *err);

/* Returns the given options as arguments of the engine's command, except those in `here` (ends
 * with NULL). In the arena of the call. */
dt_status dt_from_checkpoint_arguments(dt_string_list *out, const char *const *here,
                                       const dt_call *call, dt_error *err);

/* Runs `dtrun-engine COMMAND` with the given options, except those in `here` (ends with NULL).
 * The output is collected in `text`, and printed as it arrives unless `quiet`. With --json,
 * *object is its answer with version and run added first (new reference); else NULL. */
dt_status dt_from_checkpoint_call(json_t **object, dt_strbuf *text, const dt_run *run,
                                  const char *checkpoint, const char *const *here, bool quiet,
                                  const dt_call *call, dt_error *err);

#endif
