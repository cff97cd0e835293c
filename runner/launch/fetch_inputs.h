/* fetch_inputs: downloads the data that a recipe names by URL to this machine. */
#ifndef DT_RUNNER_LAUNCH_FETCH_INPUTS_H
#define DT_RUNNER_LAUNCH_FETCH_INPUTS_H

#include "base/arena.h"
#include "base/error.h"
#include "recipes/fields/recipe.h"

/* Replaces every URL of data.train and data.validation by a path in the cache; *out borrows the
 * rest of `recipe`. Reports downloads on stderr. Errors as in runner/fetch/fetch.h. */
dt_status dt_fetch_recipe(dt_recipe *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err);

#endif
