/* run_value: finds the value of a key for a run, for filters, columns and comparisons.
 *
 *   state, name, step, loss, elapsed, tags, ...   properties of the run
 *   optimizer.lr                                  a field of its resolved recipe
 *   valid_loss, gradient_norm                     the last value of a metric
 *   valid_loss.min, valid_loss.max                its lowest and highest value
 *
 * in this order. Ownership: texts live in the arena, or as long as the run.
 */
#ifndef DT_RUNNER_VIEW_RUN_VALUE_H
#define DT_RUNNER_VIEW_RUN_VALUE_H

#include <stdbool.h>

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

/* Converts a value of a recipe. */
dt_run_value dt_run_value_of_json(const json_t *value, dt_arena *arena);
/* Returns the recipe, borrowed; JSON null if it cannot be parsed. */
const json_t *dt_run_entry_recipe(dt_run_entry *entry);
/* Whether the recipe has any field. False for an imported run, and for a recipe that cannot be read. */
bool dt_run_entry_has_recipe(dt_run_entry *entry);
void dt_run_entry_release(dt_run_entry *entry);

dt_status dt_run_value_get(dt_run_value *out, dt_store *store, dt_run_entry *entry, const char *key,
                           dt_arena *arena, dt_error *err);
/* Whether any run can have the key. DT_ERR_USAGE with the closest key if not. */
dt_status dt_run_key_check(dt_store *store, const char *key, dt_error *err);

/* Order of two values (< 0, 0, > 0): numbers before texts, missing values last. */
int dt_run_value_order(const dt_run_value *a, const dt_run_value *b);

#endif
