/* jansson: stands in for libjansson where that is not installed.
 *
 * Purpose    a GPU machine on loan often has a compiler and CUDA, and nobody who may install
 *            packages; the engine reads and writes its JSON there all the same. Never used where
 *            the library is found (cmake/libraries.cmake).
 * Same       names, meanings and ownership of jansson 2.14 for what is declared here: what is
 *            accepted and refused, the texts that are written, insertion order, line and column of
 *            an error (its words are our own). tests/bare compares the two.
 * Left out   what base, recipes, engine and their tests do not call: unpacking, files, merging,
 *            sorted keys, other formats of json_pack than json_pack() lists. An object that holds
 *            itself is not noticed. A text of over 1 GiB is refused.
 * Units      numbers are read and written by the C library: the program stays in the C locale
 * Threads    references are counted atomically; a value that is changed belongs to one thread
 * Errors     there is none for memory: running out of it ends the process (base/strbuf.h)
 */
#ifndef DT_BARE_JANSSON_H
#define DT_BARE_JANSSON_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_INTEGER,
    JSON_REAL,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
} json_type;

typedef struct json_t json_t;
typedef long long json_int_t;

/* Where a text was refused: from 1 the line, and within it the characters read up to there. */
typedef struct json_error_t {
    int line, column, position; /* position: bytes */
    char source[80];
    char text[160];
} json_error_t;

/* Flags of reading and writing, with jansson's values. */
#define JSON_REJECT_DUPLICATES 0x1
#define JSON_DECODE_ANY        0x4

/* New references. Strings and keys are UTF-8: NULL, or -1, where they are not. */
json_t *json_object(void);
json_t *json_array(void);
json_t *json_string(const char *text);
json_t *json_stringn(const char *bytes, size_t length);
json_t *json_sprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
json_t *json_integer(json_int_t value);
json_t *json_real(double value); /* finite */
json_t *json_true(void);
json_t *json_false(void);
json_t *json_null(void);
#define json_boolean(value) ((value) ? json_true() : json_false())

json_t *json_incref(json_t *json);
void json_decref(json_t *json);
json_t *json_deep_copy(const json_t *json);
int json_equal(const json_t *a, const json_t *b);

/* All questions take NULL too, which is of no type. */
#define json_typeof(json) json_type_of(json)
json_type json_type_of(const json_t *json); /* of a value that there is */
bool json_has_type(const json_t *json, json_type type);
#define json_is_object(json)  json_has_type((json), JSON_OBJECT)
#define json_is_array(json)   json_has_type((json), JSON_ARRAY)
#define json_is_string(json)  json_has_type((json), JSON_STRING)
#define json_is_integer(json) json_has_type((json), JSON_INTEGER)
#define json_is_real(json)    json_has_type((json), JSON_REAL)
#define json_is_true(json)    json_has_type((json), JSON_TRUE)
#define json_is_false(json)   json_has_type((json), JSON_FALSE)
#define json_is_null(json)    json_has_type((json), JSON_NULL)
#define json_is_number(json)  (json_is_integer(json) || json_is_real(json))
#define json_is_boolean(json) (json_is_true(json) || json_is_false(json))

/* Of another type: NULL, 0, 0. */
const char *json_string_value(const json_t *json);
size_t json_string_length(const json_t *json);
json_int_t json_integer_value(const json_t *json);
double json_real_value(const json_t *json);
double json_number_value(const json_t *json);

/* What is returned by get is borrowed; _new takes the reference, also where it fails (-1). */
size_t json_array_size(const json_t *array);
json_t *json_array_get(const json_t *array, size_t at);
int json_array_set(json_t *array, size_t at, json_t *value);
int json_array_append_new(json_t *array, json_t *value);
int json_array_extend(json_t *array, json_t *other);
#define json_array_foreach(array, at, value)                                                   \
    for ((at) = 0; (at) < json_array_size(array) && ((value) = json_array_get((array), (at))); \
         (at)++)

size_t json_object_size(const json_t *object);
json_t *json_object_get(const json_t *object, const char *key);
int json_object_set(json_t *object, const char *key, json_t *value);
int json_object_set_new(json_t *object, const char *key, json_t *value);
int json_object_del(json_t *object, const char *key);
/* In insertion order; the next one of key NULL is the first. A key is the object's own. */
const char *json_object_key_after(const json_t *object, const char *key);
json_t *json_object_key_value(const char *key);
#define json_object_foreach(object, key, value)                   \
    for ((key) = json_object_key_after((object), NULL);           \
         (key) != NULL && ((value) = json_object_key_value(key)); \
         (key) = json_object_key_after((object), (key)))

/* NULL, and *error where there is one, for what is not JSON. Without JSON_DECODE_ANY the text is an
 * object or an array. */
json_t *json_loads(const char *text, size_t flags, json_error_t *error);
json_t *json_loadb(const char *bytes, size_t length, size_t flags, json_error_t *error);

/* s string, s? or null, s% with a size_t of bytes, b int, i int, I json_int_t, f double, n null,
 * o and O a value (o takes the reference), [] and {} of these; space, comma and colon are skipped.
 * NULL where a value is bad; references were taken all the same. */
json_t *json_pack(const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
