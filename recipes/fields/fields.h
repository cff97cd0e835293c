/* fields: defines the table of all recipe fields.
 *
 * The table drives reading, checking, defaults, `--help`-like texts, the resolved JSON and its
 * reading by the engine, and docs/recipe.md (which a test compares).
 *
 * To add a field: a member in recipe.h, a row in fields.c, then `dtrun-recipe-doc` into docs/recipe.md.
 * What one row cannot express (a default that depends on other fields, a rule across fields) goes into
 * derive.c or rules.c.
 *
 * Recipes outlive the build that wrote them (version.h). The default of a new field keeps the meaning
 * of the recipes written before it, and their hash. A default or meaning that changes needs a new
 * DT_RECIPE_VERSION.
 */
#ifndef DT_RECIPES_FIELDS_FIELDS_H
#define DT_RECIPES_FIELDS_FIELDS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/json.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_field_type {
    DT_FIELD_STRING, /* if there are choices, one of them or empty */
    DT_FIELD_INT,
    DT_FIELD_NUMBER,
    DT_FIELD_BOOL,     /* true or false */
    DT_FIELD_DURATION, /* a number of seconds, or "90s", "10m", "2h", "1d" */
    DT_FIELD_CHOICE,   /* one of `choices`; stored as its index in an int-sized enum */
    DT_FIELD_STRINGS,  /* a list; a scalar is a list of one; low and high bound its length */
    DT_FIELD_MAPS /* a list of maps of `items`, a dt_map_list; a map is a list of one; bounded too */
} dt_field_type;

/* Fields of the maps in a list: paths of one word, offsets in a struct of `bytes`. Items may contain lists of
 * maps; `derived`, `number_means` and `shorthand` are only for fields of the recipe. */
typedef struct dt_field_table {
    const struct dt_field *fields;
    size_t count, bytes;
} dt_field_table;

typedef struct dt_field {
    const char *path; /* "optimizer.lr"; maps may be nested as deep as tree.h allows */
    /* Other names of the field, NULL-terminated; NULL: none. Accepted in the field's map and at the top of the
     * recipe; stored and shown as the path. */
    const char *const *aliases;
    dt_field_type type;
    size_t offset; /* in dt_recipe */
    const char *unit;
    const char *
        count_of; /* of a number that people take for something else: what it counts, for messages */
    double low, high; /* inclusive; low_open excludes low, high_open excludes high */
    bool low_open, high_open;
    const char *const *choices;  /* NULL-terminated */
    const dt_field_table *items; /* fields of the maps in a list */
    const char *fallback;        /* the default as YAML text; NULL: required, or see derived */
    const char *derived;         /* in words: how derive.c computes the default */
    const char *number_means;    /* path of the field that a plain number given here sets */
    const char *zero_word;       /* a word that stands for 0 ("none") */
    bool shorthand;              /* a scalar instead of the map sets this field */
    bool keeps_references;       /* "${env:NAME}" is filled in only when the value is used */
    bool paths;                  /* file names: relative ones are made absolute */
    bool assignments;            /* a list of "NAME=value", which may be written as a map */
    const char *const *words;    /* NULL-terminated values of `paths` that are not file names */
    const char *help;            /* one sentence, no full stop */
} dt_field;

/* Upper bound of dt_fields_count, for arrays indexed by field. */
#define DT_FIELDS_MAX 192

extern const dt_field dt_fields[];
extern const size_t dt_fields_count;

/* Version of recipes, written ("recipe: 1") and resolved; default 1. */
#define DT_RECIPE_VERSION     1
#define DT_RECIPE_VERSION_KEY "recipe"

/* Sets every default; required and derived fields stay zero (their strings ""). Strings of defaults
 * are static. */
void dt_recipe_init(dt_recipe *recipe);

/* Returns the resolved recipe, {"recipe": 1, ...}, with all fields as nested objects in table order; of a command
 * only the fields that it can set (task_fields.h). New reference. */
json_t *dt_recipe_to_json(const dt_recipe *recipe);
/* The same with only the fields that have an effect on the recipe's task, as the history keeps it. */
json_t *dt_recipe_of_task_to_json(const dt_recipe *recipe);

/* Reads what these two wrote. A missing field gets its default. DT_ERR_CORRUPT: a required field of
 * the task is missing, an unknown key, a wrong type or range. DT_ERR_UNSUPPORTED: another
 * version (version.h), or an unknown choice. */
dt_status dt_recipe_from_json(dt_recipe *out, const json_t *json, dt_arena *arena, dt_error *err);

/* Returns the fields that differ, as [{"key": "optimizer.lr", "old": 0.0003, "new": 0.001}, ...]; URLs that may
 * contain a secret are left out. New reference. */
json_t *dt_recipe_changes(const dt_recipe *before, const dt_recipe *after);

/* Writes 32 hex digits (XXH3, 128 bits) of the resolved fields that differ from their defaults;
 * out takes 33 bytes. Equal hashes mean equal recipes. */
void dt_recipe_hash(char *out, const dt_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
