/* values_int: declares functions shared by setting a value from text (values.c) and from JSON (values_json.c).
 * Each checks the value against its field and writes a valid one into the record; else it returns `code`, with
 * a message of what was expected.
 */
#ifndef DT_RECIPES_FIELDS_VALUES_INT_H
#define DT_RECIPES_FIELDS_VALUES_INT_H

#include "recipes/fields/values.h"

/* `shown` is the value for the message, quoted if it is text. */
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
/* Checks the number of items of a list. */
dt_status dt_value_check_count(const dt_field *field, int64_t count, dt_status code, dt_error *err);

#endif
