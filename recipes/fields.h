/* fields: the one table that says what a recipe can hold.
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
    DT_FIELD_STRING, /* one of `choices` or empty, where there are choices */
    DT_FIELD_INT,
    DT_FIELD_NUMBER,
    DT_FIELD_BOOL,     /* true or false */
    DT_FIELD_DURATION, /* a number of seconds, or "90s", "10m", "2h", "1d" */
    DT_FIELD_CHOICE,   /* one of `choices`; stored as its index in an int-sized enum */
    DT_FIELD_STRINGS,  /* a list; a scalar is a list of one; low and high bound its length */
    DT_FIELD_MAPS /* a list of maps of `items`, a dt_map_list; a map is a list of one; bounded too */
} dt_field_type;

/* Of a map that stands in a list: paths of one word, offsets in a struct of `bytes`. Items may hold lists of
 * maps themselves; `derived`, `number_means` and `shorthand` are for fields of the recipe alone. */
typedef struct dt_field_table {
    const struct dt_field *fields;
    size_t count, bytes;
} dt_field_table;

typedef struct dt_field {
    const char *path; /* "optimizer.lr": maps within maps, as deep as tree.h takes them */
    /* What other programs call it, NULL-terminated; NULL: nothing else. Read in its place in its map or
     * at the top of the recipe, and kept and shown as the path. */
    const char *const *aliases;
    dt_field_type type;
    size_t offset; /* in dt_recipe */
    const char *unit;
    double low, high; /* inclusive; low_open excludes low, high_open excludes high */
    bool low_open, high_open;
    const char *const *choices;  /* NULL-terminated */
    const dt_field_table *items; /* of maps in a list */
    const char *fallback;        /* the default as YAML text; NULL: required, or see derived */
    const char *derived;         /* in words: what the default follows from; filled by derive.c */
    const char *number_means;    /* a plain number given here is meant for this field (path) */
    const char *zero_word;       /* a word that stands for 0 ("none") */
    bool shorthand;              /* a scalar given for the map means this field */
    bool keeps_references;       /* "${env:NAME}" is filled in where it is used, and never before */
    bool paths;                  /* file names: relative ones are made absolute */
    const char *const *words;    /* NULL-terminated; those of `paths` that are no file names */
    const char *help;            /* one sentence, no full stop */
} dt_field;

/* No table is longer, so that arrays by field need no allocation. */
#define DT_FIELDS_MAX 160

extern const dt_field dt_fields[];
extern const size_t dt_fields_count;

/* Of recipes, as written ("recipe: 1") and resolved; without it they are of version 1. */
#define DT_RECIPE_VERSION     1
#define DT_RECIPE_VERSION_KEY "recipe"

/* Every default; required and derived fields stay zero (their strings ""). Strings of defaults
 * are static. */
void dt_recipe_init(dt_recipe *recipe);

/* The resolved recipe: {"recipe": 1, ...}, then nested objects in table order, nothing left out. New
 * reference. */
json_t *dt_recipe_to_json(const dt_recipe *recipe);

/* The reverse. A missing field gets its default. DT_ERR_CORRUPT: a required field is missing, an unknown
 * key, a wrong type or range. DT_ERR_UNSUPPORTED: another version (version.h), or an unknown choice. */
dt_status dt_recipe_from_json(dt_recipe *out, const json_t *json, dt_arena *arena, dt_error *err);

/* The fields that differ, as [{"key": "optimizer.lr", "old": 0.0003, "new": 0.001}, ...]; an address
 * that may be a secret is not repeated. New reference. */
json_t *dt_recipe_changes(const dt_recipe *before, const dt_recipe *after);

/* 32 hex digits (XXH3, 128 bits) of the resolved fields that differ from their defaults; out takes 33
 * bytes. Two runs with one hash were asked for the same thing. */
void dt_recipe_hash(char *out, const dt_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
