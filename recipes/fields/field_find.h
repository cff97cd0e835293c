/* field_find: looks up rows of the table of fields by path or map, and describes their values in words.
 */
#ifndef DT_RECIPES_FIELDS_FIELD_FIND_H
#define DT_RECIPES_FIELDS_FIELD_FIND_H

#include "base/strbuf.h"
#include "recipes/fields/fields.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
