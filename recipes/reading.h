/* reading: a recipe while it is being read, and where each of its fields was given.
 *
 * Private to recipes/. The steps, each a file: tree.c (text → nodes), reader.c (nodes → fields),
 * reading_map.c (maps), reading_value.c (a node → the value of a field),
 * sets.c (`--set` → fields), derive.c (defaults that follow from other fields), rules.c (rules
 * across fields). Whatever is found wrong is reported at the mark of the field it is about.
 *
 * All of it is found in one go: who finds a fault records it in `err` and returns DT_ERR_RECIPE, and
 * the loops above put it among the problems and continue (dt_reading_report). What follows from a fault
 * is none: a field that was given wrongly, or by a wrong name, is *troubled*, and nothing that looks
 * at it is complained of.
 */
#ifndef DT_RECIPES_READING_H
#define DT_RECIPES_READING_H

#include "recipes/fields.h"
#include "recipes/origins.h"
#include "recipes/problems.h"
#include "recipes/reader.h"
#include "recipes/text.h"
#include "recipes/tree.h"
#include "recipes/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_reading {
    dt_recipe *recipe;
    dt_text_mark field[DT_FIELDS_MAX]; /* by row of the table; source NULL: not given */
    dt_text_mark group[DT_FIELDS_MAX]; /* where the map begins that the field stands in */
    dt_yaml_node *node[DT_FIELDS_MAX]; /* what was given; NULL: nothing */
    const char *folder;                /* where relative paths start, absolute */
    const char *stem;                  /* the file's name without its ending */
    const char *resolved;        /* source of the fields of an earlier recipe; NULL: a new one */
    bool too_many;               /* files than a recipe may be made of */
    int layer;                   /* the one being applied, from 1; --set is the last */
    int layer_of[DT_FIELDS_MAX]; /* that gave the field */
    dt_origins *origins;
    dt_yaml_node *sweep; /* of the latest layer that has one (sweep.h); NULL: none */
    const char *sweep_folder;
    size_t filled_bytes;          /* from the environment (references.h) */
    bool troubled[DT_FIELDS_MAX]; /* its value says nothing */
    bool unread; /* a source that is no YAML: what it would have given is not known */
    dt_weights_of_run *find_run; /* MAY be NULL */
    dt_problems *problems;
    dt_arena *arena;
    dt_error *err; /* of the fault at hand; empty between two */
} dt_reading;

/* All of a new recipe: reading->recipe, problems and arena are the caller's to fill in. What is wrong
 * ends among the problems, and the first of it in `err`. */
dt_status dt_reading_source(dt_reading *reading, const dt_recipe_source *source, dt_error *err);

/* Takes the fault that `st` and reading->err tell of among the problems: DT_OK, or what ends the
 * reading (no memory, too many). */
dt_status dt_reading_report(const dt_reading *reading, dt_status st, const char *rule);
/* The field is troubled, or all below the map. */
void dt_reading_trouble(dt_reading *reading, const char *path);

/* A node given for a path: a field, or a map of fields ("": the whole recipe). `key` is where the
 * path stands. */
dt_status dt_reading_apply(dt_reading *reading, const char *path, const dt_text_mark *key,
                           dt_yaml_node *node);

/* One item of a field that is a list, or where `key` is no NULL a field of an item that is a map; an
 * index of as many items as there are adds one, of text. */
dt_status dt_reading_apply_item(dt_reading *reading, const dt_field *field, int64_t index,
                                const char *key, dt_yaml_node *node);

/* The node as the field's value in `record`: the recipe, or an item of a list of maps. */
dt_status dt_reading_value(dt_reading *reading, void *record, const dt_field *field,
                           const dt_yaml_node *node);

/* An item of a list of text: file names become absolute. */
dt_status dt_reading_text_item(const char **out, dt_reading *reading, const dt_field *field,
                               const dt_yaml_node *node);

/* Record the message at the mark, and give DT_ERR_RECIPE. `text` is emptied. */
dt_status dt_reading_refuse(const dt_reading *reading, const dt_text_mark *mark, dt_strbuf *text);
dt_status dt_reading_refuse_nothing(const dt_reading *reading, const char *path,
                                    const dt_yaml_node *node);
dt_status dt_reading_refuse_twice(const dt_reading *reading, const dt_text_mark *mark,
                                  const char *what, const char *name, const dt_text_mark *first);

/* "a.b=value" on top. Relative paths in it start at the current folder. */
dt_status dt_reading_set(dt_reading *reading, const char *set);

/* Fills in what was not given and follows from what was; what is then still missing is an error. */
dt_status dt_reading_derive(dt_reading *reading);
/* The part of it that the files of model.from say: what the model is. */
dt_status dt_reading_derive_weights(dt_reading *reading);
/* Whether the training data are files of ids and not of text, by data.tokens or the first one's name. */
bool dt_reading_trains_on_ids(const dt_reading *reading);
/* The part of it that fairseq's index beside the training files says: how ids are written, and how many
 * there are. */
dt_status dt_reading_derive_tokens(dt_reading *reading);
/* What has this text because of what the field `from` says is given from now on, and told as such. */
void dt_reading_derived(dt_reading *reading, const char *path, const char *text, const char *from);

/* The rules across fields (rules.h). */
dt_status dt_reading_check(const dt_reading *reading);

/* Row of a path that is in the table. */
size_t dt_reading_row(const char *path);
bool dt_reading_given(const dt_reading *reading, const char *path);
/* Given by this recipe, and not by the earlier one that it continues from nor by another field. */
bool dt_reading_written(const dt_reading *reading, const char *path);
/* Above 0 where the first field was given in a later layer than the second, 0 in the same. */
int dt_reading_later(const dt_reading *reading, const char *path, const char *than);
/* As it is in the earlier recipe that this one resumes from. */
bool dt_reading_resolved(const dt_reading *reading, const char *path);

/* The mark of a field, or of the map that it is missing in. */
const dt_text_mark *dt_reading_mark(const dt_reading *reading, const char *path);

#ifdef __cplusplus
}
#endif
#endif
