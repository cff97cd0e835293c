/* run_value: what a key means for a run, as filters, columns and comparisons ask.
 *
 *   state, name, step, loss, elapsed, tags, ...   what lists say of a run
 *   optimizer.lr                                  a field of its resolved recipe
 *   valid_loss, gradient_norm                     the last value of a metric;
 *   valid_loss.min, valid_loss.max                what it reached
 *
 * in this order. Ownership: texts live in the arena, or with the run.
 */
#ifndef DT_RUNNER_VIEW_RUN_VALUE_H
#define DT_RUNNER_VIEW_RUN_VALUE_H

#include <stdbool.h>

#include "base/json.h"
#include "store/store.h"

typedef struct dt_run_value {
    bool there, is_number;
    double number;
    const char *text; /* as a person reads it, numbers too; "" where it is not there */
} dt_run_value;

/* A run, with its recipe once somebody asks for it. */
typedef struct dt_run_entry {
    const dt_run *run;
    json_t *recipe; /* NULL: not read yet; null: cannot be read */
} dt_run_entry;

/* Of a value of a recipe. */
dt_run_value dt_run_value_of_json(const json_t *value, dt_arena *arena);
/* The recipe, borrowed; null where it cannot be read. */
const json_t *dt_run_entry_recipe(dt_run_entry *entry);
/* Whether the recipe has any field. False for an imported run, and for a recipe that cannot be read. */
bool dt_run_entry_has_recipe(dt_run_entry *entry);
void dt_run_entry_release(dt_run_entry *entry);

dt_status dt_run_value_get(dt_run_value *out, dt_store *store, dt_run_entry *entry, const char *key,
                           dt_arena *arena, dt_error *err);
/* Whether any run could have it; DT_ERR_USAGE with the key that was probably meant. */
dt_status dt_run_key_check(dt_store *store, const char *key, dt_error *err);

/* < 0, 0, > 0: numbers before texts, what is not there last. */
int dt_run_value_order(const dt_run_value *a, const dt_run_value *b);

#endif
