/* fetch_inputs: the data that a recipe names by URL, on this machine before anything looks at
 * them. */
#ifndef DT_RUNNER_LAUNCH_FETCH_INPUTS_H
#define DT_RUNNER_LAUNCH_FETCH_INPUTS_H

#include "base/arena.h"
#include "base/error.h"
#include "recipes/recipe.h"

/* Every URL of data.train and data.validation becomes a path in the cache; *out borrows the rest of
 * `recipe`. What is fetched is reported on stderr. runner/fetch/fetch.h's errors. */
dt_status dt_fetch_recipe(dt_recipe *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err);

#endif
