/* read_recipe: the RECIPE, the --layer and the --set of a command line, read and checked.
 *
 * RECIPE "-" is read from stdin. All that is wrong is among call->problems, which main.c prints; warnings are said at once, or are
 * errors with --strict.
 */
#ifndef DT_RUNNER_READ_RECIPE_H
#define DT_RUNNER_READ_RECIPE_H

#include "recipes/problems.h"
#include "recipes/reader.h"
#include "runner/cli/command.h"

#define DT_STRICT_OPTION                                                      \
    {                                                                         \
        .name = "strict", .kind = DT_OPTION_FLAG,                             \
        .help = "take what is only warned of in the recipe for an error too", \
    }

/* What every command has that takes a RECIPE. */
/* clang-format off */
#define DT_RECIPE_OPTIONS(set_help) \
    {.name = "layer", \
     .letter = 'f', \
     .kind = DT_OPTION_LIST, \
     .value = "RECIPE", \
     .help = "lay this recipe on top, as often as needed"}, \
    {.name = "set", \
     .letter = 's', \
     .kind = DT_OPTION_LIST, \
     .value = "KEY=VALUE", \
     .help = set_help}, \
    DT_STRICT_OPTION
/* clang-format on */

/* source->origins is filled in. */
dt_status dt_read_recipe(dt_recipe *out, dt_recipe_source *source, const char *path,
                         const dt_call *call, dt_error *err);

/* What a read found, by --strict or not: the first error in `err`, warnings to stderr. */
dt_status dt_judge_problems(dt_status st, const dt_call *call, dt_error *err);

#endif
