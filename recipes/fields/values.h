/* values: converts the value of a field from text or JSON into the recipe and back; parses times.
 *
 * Errors  messages name the field and what was expected ("'clip' is -1: expected 0 to 1000000")
 *         without the position, which the caller adds (dt_error_prefix). DT_ERR_RECIPE from text,
 *          DT_ERR_CORRUPT from JSON, DT_ERR_UNSUPPORTED for an unknown choice in JSON
 */
#ifndef DT_RECIPES_FIELDS_VALUES_H
#define DT_RECIPES_FIELDS_VALUES_H

#include <stdbool.h>

#include "recipes/fields/fields.h"

#ifdef __cplusplus
extern "C" {
#endif

/* durations: parses times. */

/* Parses seconds, or "90s", "10m", "2h", "1d". */
bool dt_text_duration(double *seconds, const char *text);

/* `failure.launcher_lost`: 0 for "continue", the time of "stop_after 10m". False for anything else, and for a time
 * above the maximum. */
#define DT_LAUNCHER_LOST_MAX_SECONDS (3650 * 86400.0)
bool dt_launcher_lost_seconds(double *seconds, const char *text);

bool dt_field_has_choice(const dt_field *field, const char *text);

/* Parses a number as in recipes: 3, 1_000, 2e4, .5, never hex, inf or nan. False if it is not one. */
bool dt_text_number(double *out, const char *text);

/* Below, a record is a dt_recipe or the struct of an item of a list of maps. */

/* Allocates `count` items with their defaults in the arena. */
void dt_field_new_items(dt_map_list *out, const dt_field *field, int64_t count, dt_arena *arena);
void *dt_field_item(const dt_field *field, const dt_map_list *list, int64_t index);

/* Sets a field from the text of a scalar. The text is borrowed: it must live as long as the record. */
dt_status dt_field_set_text(void *record, const dt_field *field, const char *text, dt_error *err);

/* Sets a list; items are borrowed too. */
dt_status dt_field_set_list(void *record, const dt_field *field, const char **items, int64_t count,
                            dt_error *err);

/* Sets a list of items that were read. */
dt_status dt_field_set_maps(void *record, const dt_field *field, const dt_map_list *maps,
                            dt_error *err);

/* Sets a field from JSON. Text is copied into the arena. Unknown keys of items are ignored. */
dt_status dt_field_set_json(void *record, const dt_field *field, const json_t *value,
                            dt_arena *arena, dt_error *err);

/* New reference. */
json_t *dt_field_to_json(const void *record, const dt_field *field);

#ifdef __cplusplus
}
#endif

#endif
