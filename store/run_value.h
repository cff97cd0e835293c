/* run_value: finds the value of a key for a run, and the keys in which the recipes of runs differ.
 *
 *   state, name, step, loss, elapsed, tags, ...   properties of the run
 *   optimizer.lr                                  a field of its resolved recipe
 *   valid_loss, gradient_norm                     the last value of a metric
 *   valid_loss.min, valid_loss.max                its lowest and highest value
 *   valid_loss@1000                               its value at step 1000, or at the last point before
 *
 * in this order. Also filters of runs by such values.
 * Ownership  texts live in the arena, or as long as the run
 */
#ifndef DT_STORE_RUN_VALUE_H
#define DT_STORE_RUN_VALUE_H

#include "base/json.h"
#include "store/run.h"

#ifdef __cplusplus
extern "C" {
#endif

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
/* Whether any run has the key: a property of runs, a metric, or a field of a recipe. dt_run_key_refuse_unknown:
 * DT_ERR_USAGE if none has. */
dt_status dt_run_key_known(dt_store *store, bool *known, const char *key, dt_error *err);
dt_status dt_run_key_refuse_unknown(dt_store *store, const char *key, dt_error *err);
/* Whether every run can have the key: a property of runs. */
bool dt_run_key_is_own(const char *key);
/* A finished run whose texts are "": it has every key of its own, and no values. */
extern const dt_run dt_run_nothing;
/* Whether a run has the metric of a key, without ".min", ".max" or "@STEP". */
dt_status dt_run_key_is_metric(dt_store *store, bool *known, const char *key, dt_error *err);
/* Order of two values (< 0, 0, > 0): numbers before texts; missing values, and those that are not a number, last in both
 * directions. */
int dt_run_value_order(const dt_run_value *a, const dt_run_value *b, bool falling);

/* recipe_diff: finds the keys in which the recipes of runs differ.
 *
 * Compares resolved recipes field by field, in their order. Ignores the name, needs, notify, and fields that one of two
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

/* run_filter: parses and applies filters of runs: "optimizer.lr>1e-4", "name=gpt*", "valid_loss<=2".
 *
 * A filter is a key, one of = != < <= > >=, and a value. Two numbers are compared as numbers. Texts
 * are compared with = and != only, and * and ? are wildcards. A run without the key does not pass.
 */

typedef enum dt_filter_kind {
    DT_FILTER_EQUAL,
    DT_FILTER_UNEQUAL,
    DT_FILTER_LESS,
    DT_FILTER_LESS_OR_EQUAL,
    DT_FILTER_MORE,
    DT_FILTER_MORE_OR_EQUAL
} dt_filter_kind;

typedef struct dt_run_filter {
    const char *key, *value; /* in the arena */
    dt_filter_kind kind;
    bool is_number;
    double number;
} dt_run_filter;

/* DT_ERR_USAGE if `text` is not a filter. Does not check that the key exists. */
dt_status dt_run_filter_parse(dt_run_filter *out, const char *text, dt_arena *arena, dt_error *err);
bool dt_run_filter_passes(const dt_run_filter *filter, const dt_run_value *value);

#ifdef __cplusplus
}
#endif

#endif
