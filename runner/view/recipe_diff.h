/* recipe_diff: the keys in which the recipes of runs differ.
 *
 * Resolved recipes are compared, field by field, in their order. Left out: the name, what is told to
 * whom (notify), and fields that one of two recipes does not have, being of an older dtrun.
 */
#ifndef DT_RUNNER_VIEW_RECIPE_DIFF_H
#define DT_RUNNER_VIEW_RECIPE_DIFF_H

#include <stddef.h>

#include "runner/view/run_value.h"

/* "optimizer.lr", ...; in the arena. */
dt_status dt_recipe_diff(const char ***keys, size_t *count, dt_run_entry *entries, size_t runs,
                         dt_arena *arena, dt_error *err);

#endif
