/* values_int: what setting a value from text (values.c) and from JSON (values_json.c) share: each checks the value
 * against its field, and writes it into the record only where it is right; else `code`, with what was expected.
 */
#ifndef DT_RECIPES_VALUES_INT_H
#define DT_RECIPES_VALUES_INT_H

#include "recipes/values.h"

/* `shown` is the value as a message repeats it, quoted where it is text. */
dt_status dt_value_refuse(const dt_field *field, const char *shown, dt_status code, dt_error *err);

void *dt_value_place(void *record, const dt_field *field);
dt_status dt_value_set_number(void *record, const dt_field *field, double value, dt_status code,
                              dt_error *err);
dt_status dt_value_set_bool(void *record, const dt_field *field, const char *text, dt_status code,
                            dt_error *err);
dt_status dt_value_set_choice(void *record, const dt_field *field, const char *text, dt_status code,
                              dt_error *err);
dt_status dt_value_set_string(void *record, const dt_field *field, const char *text, dt_status code,
                              dt_error *err);
dt_status dt_value_set_list(void *record, const dt_field *field, const char **items, int64_t count,
                            dt_status code, dt_error *err);
/* Whether a list may have so many items. */
dt_status dt_value_check_count(const dt_field *field, int64_t count, dt_status code, dt_error *err);

#endif
