/* json: jansson with errors that say where.
 *
 * A getter names the object it reads in `where` ("plan.json", "event"); its message is
 * "plan.json: 'world_size': expected a whole number". A getter with a `fallback` gives it where
 * the key is missing and still refuses a wrong type; one without requires the key.
 * Ownership  strings are borrowed from the object
 */
#ifndef DT_BASE_JSON_H
#define DT_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parses text of `length` bytes; the caller owns *out (json_decref). DT_ERR_CORRUPT. */
dt_status dt_json_parse(json_t **out, const char *text, size_t length, const char *where,
                        dt_error *err);
dt_status dt_json_read(json_t **out, const char *path, size_t max_bytes, dt_error *err);

/* Compact, keys in insertion order; doubles with 17 digits, so that they come back the same. What
 * must not be shown as it is (base/display.h) is escaped: JSON may be looked at in a terminal. */
void dt_json_write(dt_strbuf *out, const json_t *value);
/* Indented by two, for people. */
void dt_json_write_pretty(dt_strbuf *out, const json_t *value);
/* json_shorten.c: appends that JSON text, its numbers with the fewest digits that read back the same: for
 * people. (A hash is of the seventeen digits that dt_json_write writes.) */
void dt_json_shorten(dt_strbuf *out, const char *text);

dt_status dt_json_get_object(json_t **out, const json_t *object, const char *key, const char *where,
                             dt_error *err);
dt_status dt_json_get_array(json_t **out, const json_t *object, const char *key, const char *where,
                            dt_error *err);
dt_status dt_json_get_string(const char **out, const json_t *object, const char *key,
                             const char *where, dt_error *err);
dt_status dt_json_get_int(int64_t *out, const json_t *object, const char *key, const char *where,
                          dt_error *err);
dt_status dt_json_get_bool(bool *out, const json_t *object, const char *key, const char *where,
                           dt_error *err);
dt_status dt_json_get_number(double *out, const json_t *object, const char *key, const char *where,
                             dt_error *err);
dt_status dt_json_get_string_or(const char **out, const json_t *object, const char *key,
                                const char *fallback, const char *where, dt_error *err);
dt_status dt_json_get_int_or(int64_t *out, const json_t *object, const char *key, int64_t fallback,
                             const char *where, dt_error *err);

/* A string; U+FFFD stands for each byte that is not UTF-8, as in the name of a file, or in a
 * message of ssh that is in the node's own character set or is cut: such a byte must not take the
 * object away. New reference. */
json_t *dt_json_text(const char *text);
/* A number, or null where JSON has none (NaN, infinities). New reference. */
json_t *dt_json_number(double value);

#ifdef __cplusplus
}
#endif
#endif
