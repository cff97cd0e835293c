/* fields: the one table that says what a recipe can hold.
 *
 * The table drives reading, checking, defaults, `--help`-like texts, the resolved JSON and its
 * reading by the engine, and docs/recipe.md (which a test compares).
 */
#ifndef DT_RECIPES_FIELDS_H
#define DT_RECIPES_FIELDS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/json.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_field_type {
    DT_FIELD_STRING,
    DT_FIELD_INT,
    DT_FIELD_NUMBER,
    DT_FIELD_BOOL,
    DT_FIELD_CHOICE, /* one of `choices`; stored as its index in an int-sized enum */
    DT_FIELD_STRINGS /* a list; a scalar is a list of one */
} dt_field_type;

typedef struct dt_field {
    const char *path; /* "optimizer.lr" */
    dt_field_type type;
    size_t offset; /* in dt_recipe */
    const char *unit;
    double low, high; /* inclusive; low_open excludes low */
    bool low_open;
    const char *const *choices; /* NULL-terminated */
    const char *fallback;       /* the default as YAML text; NULL: required */
    bool shorthand;             /* a scalar given for the map means this field */
    const char *help;           /* one sentence, no full stop */
} dt_field;

extern const dt_field dt_fields[];
extern const size_t dt_fields_count;

/* Every default; required fields stay zero. Strings of defaults are static. */
void dt_recipe_init(dt_recipe *recipe);

/* The resolved recipe as nested JSON objects in table order, nothing left out. New reference. */
json_t *dt_recipe_to_json(const dt_recipe *recipe);

/* Back; strict: unknown or missing keys, wrong types and ranges are DT_ERR_CORRUPT. */
dt_status dt_recipe_from_json(dt_recipe *out, const json_t *json, dt_arena *arena, dt_error *err);

/* 32 hex digits (XXH3, 128 bits) of the resolved JSON; out takes 33 bytes. The hash leaves out
 * nothing: two runs with one hash were asked for the same thing. */
void dt_recipe_hash(char *out, const dt_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
