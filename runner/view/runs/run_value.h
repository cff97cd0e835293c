/* run_value: finds the value of a key for a run, and the keys in which the recipes of runs differ.
 *
 *   state, name, step, loss, elapsed, tags, ...   properties of the run
 *   optimizer.lr                                  a field of its resolved recipe
 *   valid_loss, gradient_norm                     the last value of a metric
 *   valid_loss.min, valid_loss.max                its lowest and highest value
 *
 * in this order. Ownership: texts live in the arena, or as long as the run.
 */
#ifndef DT_RUNNER_VIEW_RUNS_RUN_VALUE_H
#define DT_RUNNER_VIEW_RUNS_RUN_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "store/store.h"

typedef struct dt_run_value {
    bool there, is_number;
    double number;
    const char *text; /* also of numbers; "" if not there */
} dt_run_value;

/* A run, with its recipe once it was parsed. */
typedef struct dt_run_entry {
    const dt_run *run;
    json_t *recipe; /* NULL: not read yet; null: cannot be read */
} dt_run_entry;

/* Whether the recipe has any field. False for an imported run, and for a recipe that cannot be read. */
bool dt_run_entry_has_recipe(dt_run_entry *entry);
void dt_run_entry_release(dt_run_entry *entry);

dt_status dt_run_value_get(dt_run_value *out, dt_store *store, dt_run_entry *entry, const char *key,
                           dt_arena *arena, dt_error *err);
/* Whether any run can have the key. DT_ERR_USAGE with the closest key if not. */
dt_status dt_run_key_check(dt_store *store, const char *key, dt_error *err);

/* Order of two values (< 0, 0, > 0): numbers before texts, missing values last. */
int dt_run_value_order(const dt_run_value *a, const dt_run_value *b);

/* recipe_diff: finds the keys in which the recipes of runs differ.
 *
 * Compares resolved recipes field by field, in their order. Ignores the name, notify, and fields that one of two
 * recipes does not have because it was written by an older dtrun. Skips runs without a recipe (imported ones).
 */

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
