/* read_recipe: the RECIPE and the --set of a command line, read and checked. */
#ifndef DT_RUNNER_READ_RECIPE_H
#define DT_RUNNER_READ_RECIPE_H

#include "recipes/reader.h"
#include "runner/cli/command.h"

/* `sets` is the value of --set, or NULL. */
dt_status dt_read_recipe(dt_recipe *out, dt_recipe_source *source, const char *path,
                         const dt_value *sets, dt_arena *arena, dt_error *err);

#endif
