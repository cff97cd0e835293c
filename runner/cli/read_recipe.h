/* read_recipe: reads and checks the recipe of a command line, and finds the checkpoint from which it
 * starts.
 *
 * RECIPE "-" is read from stdin. All errors are added to call->problems, which main.c prints. Warnings are
 * printed at once; with --strict they are errors.
 */
#ifndef DT_RUNNER_CLI_READ_RECIPE_H
#define DT_RUNNER_CLI_READ_RECIPE_H

#include "recipes/foreign/weights.h"
#include "recipes/read/problems.h"
#include "recipes/read/reader.h"
#include "runner/cli/command.h"

/* find_weights: finds the checkpoint that a recipe's model.from names as RUN or RUN@STEP. */

/* A dt_weights_of_run. DT_ERR_RECIPE if the run or the checkpoint does not exist (any more). */
dt_status dt_find_weights(const char **path, const char *name, dt_arena *arena, dt_error *err);

#define DT_STRICT_OPTION                                                                     \
    {                                                                                        \
        .name = "strict", .kind = DT_OPTION_FLAG, .help = "treat recipe warnings as errors", \
    }

/* Options of every command that takes a RECIPE. */
/* clang-format off */
#define DT_RECIPE_OPTIONS(set_help) \
    {.name = "layer", \
     .letter = 'f', \
     .kind = DT_OPTION_LIST, \
     .value = "RECIPE", \
     .help = "apply this recipe on top"}, \
    {.name = "set", \
     .letter = 's', \
     .kind = DT_OPTION_LIST, \
     .value = DT_ASSIGNMENT, \
     .help = set_help}, \
    DT_STRICT_OPTION
/* clang-format on */

/* Makes the assignment the last --set of the call. */
void dt_add_set(dt_call *call, const char *assignment);

/* Fills *source with its origins. DT_ERR_RECIPE if the recipe has errors. */
dt_status dt_read_recipe(dt_recipe *out, dt_recipe_source *source, const char *path,
                         const dt_call *call, dt_error *err);

/* The same for a recipe whose path and text are set in *source. */
dt_status dt_read_recipe_text(dt_recipe *out, dt_recipe_source *source, const dt_call *call,
                              dt_error *err);

/* The same for a command that takes only recipes that train. */
dt_status dt_read_training_recipe(dt_recipe *out, dt_recipe_source *source, const char *path,
                                  const dt_call *call, dt_error *err);

/* Applies --strict to call->problems. Returns the first error in `err`; prints warnings to stderr. */
dt_status dt_judge_problems(dt_status st, const dt_call *call, dt_error *err);

#endif
