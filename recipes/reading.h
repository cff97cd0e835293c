/* reading: a recipe while it is being read, and where each of its fields was given.
 *
 * Private to recipes/. The steps, each a file: tree.c (text → nodes), reader.c (nodes → fields),
 * reading_value.c (a node → the value of a field),
 * sets.c (`--set` → fields), derive.c (defaults that follow from other fields), check.c (rules
 * across fields). Whatever is found wrong is reported at the mark of the field it is about.
 */
#ifndef DT_RECIPES_READING_H
#define DT_RECIPES_READING_H

#include "recipes/fields.h"
#include "recipes/reader.h"
#include "recipes/text.h"
#include "recipes/tree.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_reading {
    dt_recipe *recipe;
    dt_text_mark field[DT_FIELDS_MAX];       /* by row of the table; source NULL: not given */
    dt_text_mark group[DT_FIELDS_MAX];       /* where the map begins that the field stands in */
    const dt_yaml_node *node[DT_FIELDS_MAX]; /* what was given; NULL: nothing */
    const char *folder;                      /* where relative paths start, absolute */
    const char *stem;                        /* the file's name without its ending */
    const char *resolved; /* source of the fields of an earlier recipe; NULL: a new one */
    dt_arena *arena;
    dt_error *err;
} dt_reading;

/* All of a new recipe: reading->recipe, arena and err are the caller's to fill in. */
dt_status dt_reading_source(dt_reading *reading, const dt_recipe_source *source);

/* A node given for a path: a field, or a map of fields ("": the whole recipe). `key` is where the
 * path stands. */
dt_status dt_reading_apply(dt_reading *reading, const char *path, const dt_text_mark *key,
                           const dt_yaml_node *node);

/* The node as the field's value in `record`: the recipe, or an item of a list of maps. */
dt_status dt_reading_value(dt_reading *reading, void *record, const dt_field *field,
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

dt_status dt_reading_check(const dt_reading *reading);

/* Row of a path that is in the table. */
size_t dt_reading_row(const char *path);
bool dt_reading_given(const dt_reading *reading, const char *path);

/* The mark of a field, or of the map that it is missing in. */
const dt_text_mark *dt_reading_mark(const dt_reading *reading, const char *path);

#ifdef __cplusplus
}
#endif
#endif
