/* from_checkpoint: what the engine makes of a run's checkpoint, for a command that hands it its options.
 *
 * The command has --checkpoint (STEP, best or a folder), and its name is the engine's. */
#ifndef DT_LAUNCH_FROM_CHECKPOINT_H
#define DT_LAUNCH_FROM_CHECKPOINT_H

#include "base/json.h"
#include "recipes/recipe.h"
#include "runner/cli/command.h"
#include "store/store.h"

/* RUN@WHICH as its two parts; no run name has an '@'. *which is what --checkpoint says if there is no '@', NULL if
 * there is neither. DT_ERR_USAGE if there are both. For a command without --checkpoint: `option` is false. */
dt_status dt_from_checkpoint_ref(const char **run, const char **which, const char *ref, bool option,
                                 const dt_call *call, dt_error *err);

/* The folder of that checkpoint, of the newest if `which` is NULL. DT_ERR_NOT_FOUND. */
dt_status dt_from_checkpoint_find(const char **path, dt_store *store, const dt_run *run,
                                  const char *which, const dt_call *call, dt_error *err);

/* What was given, as the engine's command of that name takes it, but for the options that `here` lists (ends
 * with NULL). In the arena of the call. */
dt_status dt_from_checkpoint_arguments(dt_string_list *out, const char *const *here,
                                       const dt_call *call, dt_error *err);

/* Calls `dtrun-engine COMMAND` with what was given, but for the options that `here` lists (ends with NULL).
 * What it says is kept in `text`, and shown as it comes, unless it is `quiet`; with --json *object is its answer, with version and
 * run in front (new reference), and else NULL. */
dt_status dt_from_checkpoint_call(json_t **object, dt_strbuf *text, const dt_run *run,
                                  const char *checkpoint, const char *const *here, bool quiet,
                                  const dt_call *call, dt_error *err);

#endif
