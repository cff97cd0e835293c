/* values: one field's value, from text or JSON into the recipe and back, by its row of the table.
 *
 * Errors  messages name the field and what was expected ("'clip' is -1: expected 0 to 1000000")
 *         and leave where it stands to the caller (dt_error_prefix). DT_ERR_RECIPE from text,
 *         DT_ERR_CORRUPT from JSON, and DT_ERR_UNSUPPORTED where it has a choice that there
 *         is not (yet); DT_ERR_NOMEM
 */
#ifndef DT_RECIPES_VALUES_H
#define DT_RECIPES_VALUES_H

#include "base/strbuf.h"
#include "recipes/fields.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The row of a path, or NULL. */
const dt_field *dt_field_find(const char *path);

/* The path that is meant by one with an alias at its end ("d_model", "model.d_model"), else `path`. */
const char *dt_field_unalias(const char *path);

/* Length of the part before the last dot: 0 for a field of the top level. */
size_t dt_field_group_length(const dt_field *field);

/* Whether `group` ("optimizer") is the map that the field stands in. */
bool dt_field_in_group(const dt_field *field, const char *group);

/* Whether the field stands in the map ("": the whole recipe), or in a map of it. */
bool dt_field_below(const dt_field *field, const char *map);

/* Whether fields stand below the path. */
bool dt_field_is_map(const char *path);

/* "a whole number", "one of 'fp32', 'bf16'", "a number above 0 and up to 100": for messages and
 * the reference page. */
void dt_field_expected(dt_strbuf *out, const dt_field *field);

/* "0 to 1000000 steps"; adds nothing where there is no range to tell. */
void dt_field_range(dt_strbuf *out, const dt_field *field);

bool dt_field_has_choice(const dt_field *field, const char *text);

/* Whether the text is a number as recipes write it: 3, 1_000, 2e4, .5, never hex, inf or nan. */
bool dt_text_number(double *out, const char *text);

/* What a recipe of that version means by leaving the field out; NULL there: it may not, or see derived. */
const char *const *dt_field_default(const dt_field *field, int64_t version);

/* In what follows a record is the dt_recipe, or the struct of an item of a list of maps. */

/* The item's field of that name, or NULL. */
const dt_field *dt_field_find_item(const dt_field_table *items, const char *key);

/* `count` items with their defaults in *out, from the arena. */
dt_status dt_field_new_items(dt_map_list *out, const dt_field *field, int64_t count,
                             dt_arena *arena, dt_error *err);
void *dt_field_item(const dt_field *field, const dt_map_list *list, int64_t index);

/* A scalar as text. The text is borrowed: it must live as long as the record. */
dt_status dt_field_set_text(void *record, const dt_field *field, const char *text, dt_error *err);

/* A list; items are borrowed likewise. */
dt_status dt_field_set_list(void *record, const dt_field *field, const char **items, int64_t count,
                            dt_error *err);

/* Items that are read. */
dt_status dt_field_set_maps(void *record, const dt_field *field, const dt_map_list *maps,
                            dt_error *err);

/* Text is copied into the arena. Keys of items that are not known are passed over. */
dt_status dt_field_set_json(void *record, const dt_field *field, const json_t *value,
                            dt_arena *arena, dt_error *err);

/* New reference. */
json_t *dt_field_to_json(const void *record, const dt_field *field);

#ifdef __cplusplus
}
#endif
#endif
