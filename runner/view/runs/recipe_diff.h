/* recipe_diff: finds the keys in which the recipes of runs differ.
 *
 * Compares resolved recipes field by field, in their order. Ignores the name, notify, and fields that one of two
 * recipes does not have because it was written by an older dtrun. Skips runs without a recipe (imported ones).
 */
#ifndef DT_RUNNER_VIEW_RECIPE_DIFF_H
#define DT_RUNNER_VIEW_RECIPE_DIFF_H

#include <stddef.h>

#include "runner/view/runs/run_value.h"

/* Finds keys such as "optimizer.lr"; they live in the arena. */
void dt_recipe_diff(const char ***keys, size_t *count, dt_run_entry *entries, size_t runs,
                    dt_arena *arena);

typedef enum dt_recipe_overlap {
    DT_RECIPES_MISSING, /* fewer than two runs have a recipe */
    DT_RECIPES_APART,   /* no field is in all recipes */
    DT_RECIPES_PARTLY,  /* some fields are in some of the recipes only */
    DT_RECIPES_WHOLE    /* all recipes have the same fields */
} dt_recipe_overlap;
/* Compares which fields the recipes have, whatever their values. Runs without a recipe do not count. */
dt_recipe_overlap dt_recipe_compare_fields(dt_run_entry *entries, size_t runs);

#endif
