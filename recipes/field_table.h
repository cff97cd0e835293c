/* field_table: the table of fields as readers of it ask: rows by their path, the maps that they stand in, what a
 * row takes in words, and its default.
 */
#ifndef DT_RECIPES_FIELD_TABLE_H
#define DT_RECIPES_FIELD_TABLE_H

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

/* The item's field of that name, or NULL. */
const dt_field *dt_field_find_item(const dt_field_table *items, const char *key);

#ifdef __cplusplus
}
#endif
#endif
