/* fields: the one table that says what a recipe can hold.
 *
 * The table drives reading, checking, defaults, `--help`-like texts, the resolved JSON and its
 * reading by the engine, and docs/recipe.md (which a test compares).
 *
 * Adding a field: a member in recipe.h, a row in fields.c with `.added = true`, then
 * `dtrun-recipe-doc` into docs/recipe.md. What one row cannot say (a default that follows from other
 * fields, a rule across fields) goes into derive.c or rules.c.
 *
 * Recipes outlive the build that wrote them (version.h). A field that is added must have a default
 * that means what went before it, and nothing else changes. Where a default or a meaning changes,
 * DT_RECIPE_VERSION rises, and `before` says what recipes of older versions still mean.
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

/* Recipes up to `version` mean this where they leave the field out. */
typedef struct dt_field_before {
    int64_t version; /* 0: the end of the list */
    const char *text;
} dt_field_before;

/* Of a map that stands in a list: paths of one word, offsets in a struct of `bytes`. Items may hold lists of
 * maps themselves; `before`, `derived`, `number_means` and `shorthand` are for fields of the recipe alone. */
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
    const char *const *choices;    /* NULL-terminated */
    const dt_field_table *items;   /* of maps in a list */
    const char *fallback;          /* the default as YAML text; NULL: required, or see derived */
    const dt_field_before *before; /* other defaults, the oldest version first; NULL: none */
    bool added;                    /* after 0.1.0 */
    bool ignorable;                /* where added: who does not know it may continue without it */
    const char *derived;           /* in words: what the default follows from; filled by derive.c */
    const char *number_means;      /* a plain number given here is meant for this field (path) */
    const char *zero_word;         /* a word that stands for 0 ("none") */
    bool shorthand;                /* a scalar given for the map means this field */
    bool keeps_references;    /* "${env:NAME}" is filled in where it is used, and never before */
    bool paths;               /* file names: relative ones are made absolute */
    const char *const *words; /* NULL-terminated; those of `paths` that are no file names */
    const char *help;         /* one sentence, no full stop */
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
/* Those of a recipe of that version, 1 to DT_RECIPE_VERSION. */
void dt_recipe_init_version(dt_recipe *recipe, int64_t version);

/* The resolved recipe: {"recipe": 1, ...}, then nested objects in table order, nothing left out. Where
 * fields that were added say other than what went before them, and are not ignorable, "needs" lists
 * them: ["model.colour"]. New reference. */
json_t *dt_recipe_to_json(const dt_recipe *recipe);

/* Back. A missing field has its default of that version; required ones that are missing, wrong types
 * and ranges are DT_ERR_CORRUPT. Of a newer build (version.h): DT_ERR_UNSUPPORTED, or a warning. */
dt_status dt_recipe_from_json(dt_recipe *out, const json_t *json, dt_arena *arena, dt_error *err);

/* The fields that differ, as [{"key": "optimizer.lr", "old": 0.0003, "new": 0.001}, ...]; an address
 * that may be a secret is not repeated. New reference. */
json_t *dt_recipe_changes(const dt_recipe *before, const dt_recipe *after);

/* 32 hex digits (XXH3, 128 bits) of the resolved fields; out takes 33 bytes. Two runs with one hash were
 * asked for the same thing: only fields that were added and say what went before them are left out, so
 * that a recipe keeps its hash when dtrun learns more. */
void dt_recipe_hash(char *out, const dt_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
