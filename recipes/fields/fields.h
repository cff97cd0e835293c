/* fields: defines the table of all recipe fields, and finds its rows by path, by map and by task.
 *
 * The table drives reading, checking, defaults, `--help`-like texts, the resolved JSON and its
 * reading by the engine, and docs/recipe.md (which a test compares).
 *
 * To add a field: a member in recipe.h, a row in fields.c, then `dtrun-recipe-doc` into docs/recipe.md.
 * What one row cannot express (a default that depends on other fields, a rule across fields) goes into
 * derive.c or rules.c.
 *
 * Recipes outlive the build that wrote them. The default of a new field keeps the meaning
 * of the recipes written before it, and their hash. A default or meaning that changes needs a new
 * DT_RECIPE_VERSION.
 */
#ifndef DT_RECIPES_FIELDS_FIELDS_H
#define DT_RECIPES_FIELDS_FIELDS_H

#include <stddef.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
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
    bool empties;                /* a list's items can be "" */
    bool assignments;            /* a list of "NAME=value", which may be written as a map */
    const char *const *words;    /* NULL-terminated values of `paths` that are not file names */
    const char *help;            /* one sentence, no full stop */
} dt_field;

/* Upper bound of dt_fields_count, for arrays indexed by field. */
#define DT_FIELDS_MAX 256

extern const dt_field dt_fields[];
extern const size_t dt_fields_count;

/* Version of recipes, written ("recipe: 1") and resolved; default 1. */
#define DT_RECIPE_VERSION     1
#define DT_RECIPE_VERSION_KEY "recipe"

/* Sets every default; required and derived fields stay zero (their strings ""). Strings of defaults
 * are static. */
void dt_recipe_init(dt_recipe *recipe);

/* Returns the resolved recipe, {"recipe": 1, ...}, with all fields as nested objects in table order; of a command
 * only the fields that it can set. New reference. */
json_t *dt_recipe_to_json(const dt_recipe *recipe);
/* The same with only the fields that have an effect on the recipe's task, as the history keeps it. */
json_t *dt_recipe_of_task_to_json(const dt_recipe *recipe);

/* Reads what these two wrote. A missing field gets its default. DT_ERR_CORRUPT: a required field of
 * the task is missing, an unknown key, a wrong type or range. DT_ERR_UNSUPPORTED: another
 * version, or an unknown choice. */
dt_status dt_recipe_from_json(dt_recipe *out, const json_t *json, dt_arena *arena, dt_error *err);

/* Returns the fields that differ, as [{"key": "optimizer.lr", "old": 0.0003, "new": 0.001}, ...]; URLs that may
 * contain a secret are left out. New reference. */
json_t *dt_recipe_changes(const dt_recipe *before, const dt_recipe *after);

/* Writes 32 hex digits (XXH3, 128 bits) of the resolved fields that differ from their defaults;
 * out takes 33 bytes. Equal hashes mean equal recipes. */
void dt_recipe_hash(char *out, const dt_recipe *recipe);

/* field_find: looks up rows of the table of fields by path or map, and describes their values in words.
 */

/* Returns the row of a path, or NULL. */
const dt_field *dt_field_find(const char *path);

/* Returns the path of the field that `path` names by an alias ("d_model", "model.d_model"), else `path`. */
const char *dt_field_unalias(const char *path);

/* Returns the length of the part before the last dot: 0 for a field of the top level. */
size_t dt_field_group_length(const dt_field *field);

/* Returns whether the map `group` ("optimizer") directly contains the field. */
bool dt_field_in_group(const dt_field *field, const char *group);

/* Returns whether the map ("": the whole recipe) contains the field, directly or in a nested map. */
bool dt_field_below(const dt_field *field, const char *map);

/* Returns whether the path is a map of fields. */
bool dt_field_is_map(const char *path);

/* Describes the valid values for messages and the reference page: "a whole number", "one of
 * 'fp32', 'bf16'", "a number above 0 and up to 100". */
void dt_field_expected(dt_strbuf *out, const dt_field *field);

/* Adds the range, "0 to 1000000 steps"; adds nothing if the field has no range. */
void dt_field_range(dt_strbuf *out, const dt_field *field);

/* Returns the item's field of this name, or NULL. */
const dt_field *dt_field_find_item(const dt_field_table *items, const char *key);

/* task_fields: selects the fields that have an effect on a task. The other fields of a run of generate or score are
 * those of the checkpoint that it uses; those of a command have no value.
 */

/* Returns whether a recipe with this task may set the field. */
bool dt_field_is_of_task(const dt_field *field, dt_task_kind task);
/* Returns the option of `dtrun-engine generate` that the field sets, as in "top-k" (static);
 * NULL: none. */
const char *dt_field_generate_option(const dt_field *field);
/* Returns whether the task processes the lines of a file with a checkpoint: generate and score. */
bool dt_task_has_lines(dt_task_kind task);

/* Values of `processes` that are not a number. */
enum { DT_PROCESSES_GPU = 0, DT_PROCESSES_NODE = -1, DT_PROCESSES_WRONG = -2 };
/* Returns the processes of a command on each node, or one of these values. GPU for another task. */
int64_t dt_recipe_processes(const dt_recipe *recipe);

/* Appends the words of the recipe's command as one line, in quotes where a word has blanks. */
void dt_command_words(dt_strbuf *out, const dt_recipe *recipe);

/* Appends a word to a command as text, in quotes if the reader of recipes needs them (recipes/read/derive.c). */
void dt_command_add_word(dt_strbuf *out, const char *word);
/* Returns whether dtrun sets the environment variable for each process of a command (docs/command.md). */
bool dt_command_sets_variable(const char *name, size_t length);

/* Returns text for a shell: the recipe's `activate`, whose failure ends the shell with its code, and then `then`. In
 * the arena. Run it with DT_ACTIVATE_SHELL and -l -c, where that exists; it works in /bin/sh too. */
const char *dt_command_activated(const char *activate, const char *then, dt_arena *arena);
#define DT_ACTIVATE_SHELL "/bin/bash"

/* Returns the name of a task, as in recipes. */
const char *dt_task_name(dt_task_kind task);

/* version: checks that this build can read a document that another build may have written.
 *
 * Documents  resolved recipes, plans and kept attempts; docs/formats.md lists every format and where it
 *            states its version
 * Rules      a document without a version is of version 1
 *            a version other than the expected one: DT_ERR_UNSUPPORTED, whatever else is in the document
 *            an unknown key: DT_ERR_CORRUPT, since a build that adds a key raises the version
 */

/* Checks that the integer at `key` is `version`. DT_ERR_CORRUPT: it is not an integer from 1. `where` names the
 * document in messages. */
dt_status dt_version_check(const json_t *document, const char *key, int64_t version,
                           const char *where, dt_error *err);

/* Fails: this build does not know the key at `path` ("model.colour"). */
dt_status dt_version_unknown_key(const char *path, const char *where, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
