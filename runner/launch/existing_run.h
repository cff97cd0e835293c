/* existing_run: what resume, fork, generate and score start from: the recipe and the checkpoints of an
 * existing run.
 *
 * Errors: DT_ERR_NOT_FOUND if there is no such checkpoint, DT_ERR_USAGE, DT_ERR_RECIPE
 */
#ifndef DT_RUNNER_LAUNCH_EXISTING_RUN_H
#define DT_RUNNER_LAUNCH_EXISTING_RUN_H

#include "base/json.h"
#include "engine/checkpoint/checkpoint.h"
#include "recipes/fields/recipe.h"
#include "recipes/read/origins.h"
#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "store/run.h"

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

/* Makes all checks before the attempt that continues from the open checkpoint in the folder
 * `path`: those of preflight.h, resume_check.c and nodes.h. *resume_place: position in the data.
 * If the file of recipe->data.tokenizer is missing and --set does not name another, copies the
 * tokenizer of the checkpoint into the run's folder, with a note. `origins` must outlive *flight. */
dt_status dt_existing_run_preflight(dt_preflight *flight, dt_budget_place *resume_place,
                                    dt_recipe *recipe, const dt_origins *origins, const dt_run *run,
                                    const dt_checkpoint *checkpoint, const char *path,
                                    const dt_call *call, dt_error *err);

/* resume_check: checks, before there is an attempt, whether a run can resume from a checkpoint with a recipe.
 *
 * Errors  DT_ERR_RECIPE with what does not match the checkpoint: data in which its position means something else
 *         (unless `new_data` allows them), other parameters, a model that computes something else with them
 *         (unless `new_model` allows it), another optimizer; and if every step is done
 */

/* flight->plan.new_data: the data may differ. *at: position in the recipe's data from which the
 * run continues. */
dt_status dt_resume_check(dt_budget_place *resume_place, const dt_preflight *flight,
                          const dt_checkpoint *checkpoint, const dt_run *run, const dt_call *call,
                          dt_error *err);

/* Prints a note if a step has a different number of tokens than before the checkpoint, and how
 * to keep that number. Call after the ranks are final (dt_nodes_check). */
void dt_resume_note_batch(const dt_preflight *flight, const dt_checkpoint *checkpoint,
                          const dt_call *call);

/* program: the next attempt of an ended run of a command, with the same command or as --set changes it. */

/* Makes all checks before it. *resume_place: step of its checkpoint. DT_ERR_USAGE: the run is finished, or an option is for
 * runs that train. `origins` must outlive *flight. */
dt_status dt_program_preflight(dt_preflight *flight, dt_budget_place *resume_place,
                               dt_origins *origins, dt_store *store, dt_run *run,
                               const dt_call *call, dt_error *err);

/* from_checkpoint: runs an engine command on a run's checkpoint, with the options of the dtrun command.
 *
 * The dtrun command has --checkpoint (STEP, best or a folder), and the same name as the engine's command. */

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

/* Options of a command that samples tokens. */
#define DT_SAMPLING_OPTIONS                                                                       \
    {.name = "temperature",                                                                       \
     .letter = 't',                                                                               \
     .kind = DT_OPTION_NUMBER,                                                                    \
     .value = "X",                                                                                \
     .fallback = "0.8",                                                                           \
     .low = 0,                                                                                    \
     .high = 100,                                                                                 \
     .help = "0 takes the likeliest token, 1 samples from the learned distribution"},             \
        {.name = "top-k",                                                                         \
         .letter = 'k',                                                                           \
         .kind = DT_OPTION_INT,                                                                   \
         .value = "K",                                                                            \
         .fallback = "0",                                                                         \
         .low = 0,                                                                                \
         .high = 1 << 24,                                                                         \
         .help = "sample only from the K likeliest tokens; 0 for all"},                           \
        {.name = "top-p",                                                                         \
         .kind = DT_OPTION_NUMBER,                                                                \
         .value = "P",                                                                            \
         .fallback = "1",                                                                         \
         .low = 1e-9,                                                                             \
         .high = 1,                                                                               \
         .help =                                                                                  \
             "sample only from the likeliest tokens whose probabilities add up to P; 1 for all"}, \
    {                                                                                             \
        .name = "repetition-penalty", .kind = DT_OPTION_NUMBER, .value = "R", .fallback = "1",    \
        .low = 0.01, .high = 100,                                                                 \
        .help = "above 1: tokens that are already in the text become less likely"                 \
    }

/* The data type of a command that computes with a checkpoint. */
extern const char *const dt_from_checkpoint_precisions[];
#define DT_PRECISION_OPTION                                                                    \
    {                                                                                          \
        .name = "precision", .kind = DT_OPTION_CHOICE, .value = "P", .fallback = "fp32",       \
        .choices = dt_from_checkpoint_precisions,                                              \
        .help = "data type of weights and activations (bf16 reads half as many bytes a token)" \
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

/* Runs `dtrun-engine chat` on this terminal, with the given options and the template of the run, until it ends. */
dt_status dt_from_checkpoint_talk(const dt_run *run, const char *checkpoint, const dt_call *call,
                                  dt_error *err);

#endif
