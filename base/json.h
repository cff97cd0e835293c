/* json: reads and writes JSON with jansson; its errors name the place.
 *
 * `where` names the object ("plan.json", "event") in messages: "plan.json: 'world_size': expected a whole number". A
 * getter with a `fallback` returns it if the key is missing, and still refuses a wrong type; a getter without
 * a fallback requires the key.
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
/* The same, but strings may contain U+0000: read them with json_string_length. */
dt_status dt_json_parse_with_nul(json_t **out, const char *text, size_t length, const char *where,
                                 dt_error *err);
dt_status dt_json_read(json_t **out, const char *path, size_t max_bytes, dt_error *err);

/* The same for a file of Python: integers that do not fit 64 bits, such as the model_max_length of transformers,
 * become real numbers. */
dt_status dt_json_read_foreign(json_t **out, const char *path, size_t max_bytes, dt_error *err);

/* Writes compact JSON with keys in insertion order; doubles with 17 digits, so that they read back the same. Characters
 * that must not be shown (base/display.h) are escaped, since JSON may be printed to a terminal. */
void dt_json_write(dt_strbuf *out, const json_t *value);
/* The same, indented by two spaces. */
void dt_json_write_pretty(dt_strbuf *out, const json_t *value);
/* json.c: appends JSON text, its numbers with the fewest digits that read back the same, for people. (Hashes
 * are computed from the 17 digits of dt_json_write.) */
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

/* Returns a new string; each byte that is not UTF-8 becomes U+FFFD. Such bytes occur in file names and in messages of
 * ssh, which can be cut or in another character set; jansson would refuse the string. */
json_t *dt_json_text(const char *text);
/* Returns a new number, or null for NaN and infinities. */
json_t *dt_json_number(double value);

#ifdef __cplusplus
}
#endif
#endif
