/* from_checkpoint: runs an engine command on a run's checkpoint, with the options of the dtrun command.
 *
 * The dtrun command has --checkpoint (STEP, best or a folder), and the same name as the engine's command. */
#ifndef DT_LAUNCH_FROM_CHECKPOINT_H
#define DT_LAUNCH_FROM_CHECKPOINT_H

#include "base/json.h"
#include "recipes/fields/recipe.h"
#include "runner/cli/command.h"
#include "store/store.h"

/* Options of the dtrun command. */
#define DT_FROM_CHECKPOINT_OPTIONS                                                              \
    {.name = "checkpoint",                                                                      \
     .letter = 'c',                                                                             \
     .kind = DT_OPTION_TEXT,                                                                    \
     .value = "STEP|best|DIR",                                                                  \
     .help =                                                                                    \
         "use this step, the lowest validation loss, or a folder (with a '/'), instead of the " \
         "newest checkpoint"},                                                                  \
        {.name = "device",                                                                      \
         .kind = DT_OPTION_TEXT,                                                                \
         .value = "NAME",                                                                       \
         .fallback = "cpu",                                                                     \
         .help = "cpu, or cuda:N of this machine"},                                             \
    {                                                                                           \
        .name = "threads", .kind = DT_OPTION_INT, .value = "N", .fallback = "0", .low = 0,      \
        .high = 1024, .help = "CPU threads; 0 for all cores"                                    \
    }

/* Splits RUN@WHICH; run names contain no '@'. Without '@', *which is the value of --checkpoint,
 * or NULL. DT_ERR_USAGE if both are given. option: the command has --checkpoint. */
dt_status dt_from_checkpoint_ref(const char **run, const char **which, const char *ref, bool option,
                                 const dt_call *call, dt_error *err);

/* Returns the folder of that checkpoint, or of the newest if `which` is NULL. DT_ERR_NOT_FOUND. */
dt_status dt_from_checkpoint_find(const char **path, dt_store *store, const dt_run *run,
                                  const char *which, const dt_call *call, dt_error *err);

/* Runs `dtrun-engine COMMAND` with the given options, except those that only dtrun has. The output
 * is collected in `text`, and printed as it arrives unless `quiet`. With --json, *object is its
 * answer with version and run added first (new reference); else NULL. */
dt_status dt_from_checkpoint_call(json_t **object, dt_strbuf *text, const dt_run *run,
                                  const char *checkpoint, bool quiet, const dt_call *call,
                                  dt_error *err);

#endif
