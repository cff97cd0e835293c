/* reading: holds a recipe while it is being read, applies its layers, and detects literal secrets.
 *
 * Private to recipes/. The steps, each a file: tree.c (text → nodes), reader.c (nodes → fields),
 * reading_map.c (maps), reading_value.c (a node → the value of a field),
 * sets.c (`--set` → fields), derive.c (defaults that follow from other fields), rules.c (rules across fields).
 * Errors are reported at the mark of their field.
 *
 * One reading finds all errors: a function that finds an error records it in `err` and returns
 * DT_ERR_RECIPE; its caller's loop adds it to the problems and continues (dt_reading_report). To avoid
 * errors that follow from other errors, a field with a wrong value or name is *troubled*, and checks that
 * use this field are skipped.
 */
#ifndef DT_RECIPES_READ_READING_H
#define DT_RECIPES_READ_READING_H

#include <stdbool.h>

#include "recipes/fields/fields.h"
#include "recipes/fields/text.h"
#include "recipes/foreign/weights.h"
#include "recipes/read/origins.h"
#include "recipes/read/problems.h"
#include "recipes/read/reader.h"
#include "recipes/read/tree.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_reading {
    dt_recipe *recipe;
    dt_text_mark field[DT_FIELDS_MAX]; /* by row of the table; source NULL: not given */
    dt_text_mark group
        [DT_FIELDS_MAX]; /* key of the map that contains the field; line 0: the recipe lacks it */
    dt_yaml_node *node[DT_FIELDS_MAX]; /* what was given; NULL: nothing */
    const char *folder;                /* base of relative paths, absolute */
    const char *stem;                  /* the file's name without its ending */
    const char *recipe_folder;         /* folder of the recipe itself, not of a layer */
    const char *
        resolved; /* source name of the fields of an earlier, resolved recipe; NULL: a new recipe */
    bool too_many;               /* more files than a recipe may consist of */
    int layer;                   /* layer being applied, from 1; --set is the last */
    int layer_of[DT_FIELDS_MAX]; /* layer that set each field */
    dt_origins *origins;
    dt_yaml_node *sweep; /* sweep of the last layer with one (reader.h); NULL: none */
    const char *sweep_folder;
    size_t filled_bytes;          /* bytes filled in from the environment (read_int.h) */
    bool troubled[DT_FIELDS_MAX]; /* its value is invalid and must not be checked */
    bool unread;                  /* a source is not YAML, so that its fields are unknown */
    dt_weights_of_run *find_run;  /* MAY be NULL */
    dt_problems *problems;
    dt_arena *arena;
    dt_error *err; /* the current error; empty between errors */
} dt_reading;

/* Adds the error in `st` and reading->err to the problems. Returns DT_OK, or an error that ends the reading
 * (no memory, too many problems). */
dt_status dt_reading_report(const dt_reading *reading, dt_status st, const char *rule);
/* Marks the field, or all fields below the map, as troubled. */
void dt_reading_trouble(dt_reading *reading, const char *path);

/* Applies a node to a path: a field, or a map of fields ("": the whole recipe). `key` is the position of the
 * path. */
dt_status dt_reading_apply(dt_reading *reading, const char *path, const dt_text_mark *key,
                           dt_yaml_node *node);

/* Returns the field of a path "FIELD.NAME" whose FIELD is a map of names, and *name; NULL: another path. */
const dt_field *dt_reading_assignment(const char **name, const char *path);
/* Sets NAME in such a field; the others keep their values. */
dt_status dt_reading_apply_assignment(dt_reading *reading, const dt_field *field, const char *name,
                                      dt_yaml_node *node);

/* Stores the node as the field's value in `record`: the recipe, or an item of a list of maps. */
dt_status dt_reading_value(dt_reading *reading, void *record, const dt_field *field,
                           const dt_yaml_node *node);

/* Reads an item of a list of text; file names become absolute. */
dt_status dt_reading_text_item(const char **out, dt_reading *reading, const dt_field *field,
                               const dt_yaml_node *node);

/* Record the message at the mark and return DT_ERR_RECIPE. `text` is emptied. */
dt_status dt_reading_refuse(const dt_reading *reading, const dt_text_mark *mark, dt_strbuf *text);
dt_status dt_reading_refuse_nothing(const dt_reading *reading, const char *path,
                                    const dt_yaml_node *node);
dt_status dt_reading_refuse_twice(const dt_reading *reading, const dt_text_mark *mark,
                                  const char *what, const char *name, const dt_text_mark *first);

/* Applies "a.b=value". Relative paths in it start at the current folder. */
dt_status dt_reading_set(dt_reading *reading, const char *set);

/* Fills in defaults that depend on other fields; a required field that is then still missing is an error. */
dt_status dt_reading_derive(dt_reading *reading);
/* The part for data.mixture: data.train becomes the files of its parts; or, if data.train is of a later layer, the mixture
 * is dropped. */
void dt_reading_derive_mixture(dt_reading *reading);
/* The part of dt_reading_derive for model.from: dimensions of the model from its files. */
dt_status dt_reading_derive_weights(dt_reading *reading);
/* Sets the fields of an adapter from the folder of lora.from: before the weights model.from, after them the others. */
dt_status dt_reading_derive_adapter(dt_reading *reading, bool after_weights);
/* Returns whether the training data are files of ids instead of text, by data.tokens or the first file's name. */
bool dt_reading_trains_on_ids(const dt_reading *reading);
/* Marks `path` as set to `text` because of the field `from`, which origins then show. */
void dt_reading_derived(dt_reading *reading, const char *path, const char *text, const char *from);

/* The rules across fields (rules.h). */
dt_status dt_reading_check(const dt_reading *reading);

/* Returns the row of a path that is in the table. */
size_t dt_reading_row(const char *path);
bool dt_reading_given(const dt_reading *reading, const char *path);
/* Returns whether this recipe sets the field itself, rather than the earlier recipe or another field. */
bool dt_reading_written(const dt_reading *reading, const char *path);
/* Returns above 0 if the first field was set in a later layer than the second, 0 if in the same. */
int dt_reading_later(const dt_reading *reading, const char *path, const char *than);
/* Returns whether the field is unchanged from the earlier recipe that this one resumes. */
bool dt_reading_resolved(const dt_reading *reading, const char *path);

/* Returns the mark of a field, or of the map that lacks the field. */
const dt_text_mark *dt_reading_mark(const dt_reading *reading, const char *path);
/* Returns the mark of one item of a list or of a map of names, as the recipe gives it; that of the field if the recipe
 * does not give this item. */
const dt_text_mark *dt_reading_item_mark(const dt_reading *reading, const char *path,
                                         int64_t index);

/* layers: applies the texts of a recipe one on top of another.
 *
 *   extends: base.yaml          a recipe file, relative to this one's folder; or [a.yaml, b.yaml];
 *                               or a preset of the model
 *   dtrun launch gpt.yaml -f big.yaml -f tonight.yaml --set optimizer.lr=1e-3
 *
 * Order, lowest precedence first: what the recipe extends (which may extend others), the recipe, each -f
 * with what it extends, --set. Maps are merged field by field; scalars and lists are replaced. Refused: a
 * file that extends itself, more than DEPTH_MAX nested files, more than DT_ORIGIN_SOURCES in all.
 */

#define DT_RECIPE_EXTENDS_KEY "extends"

/* Applies a text, and all that it extends, to reading->recipe. DT_ERR_RECIPE: the text is not a recipe;
 * other errors are added to the problems. */
dt_status dt_layer_apply(dt_reading *reading, const char *path, const char *text);

/* secret: detects literal secrets in a URL.
 *
 * A recipe is copied into the history, the run's folder, the plan and the page, and people compare and mail
 * it; it must not contain secrets. The rule is a simple heuristic:
 *   - a name or password before '@';
 *   - a part of its path, or a value after '?', of 20 or more letters, digits, '-' and '_' that mixes upper case,
 *     lower case and digits (two of the three), as random keys do;
 *   - for a webhook any value after '?'.
 * "${env:NAME}" is not a literal; the default in "${env:NAME:-default}" is.
 */

typedef enum dt_url_use {
    DT_URL_WEBHOOK,
    DT_URL_DATA /* the path is not checked: it may contain a commit or a digest, which look like keys */
} dt_url_use;

/* Returns a description of the secret for messages, "a password before '@'"; NULL if there is none. */
const char *dt_url_secret(const char *url, dt_url_use use);

#ifdef __cplusplus
}
#endif

#endif
