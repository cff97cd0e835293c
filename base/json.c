#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"

static dt_status parse(json_t **out, const char *text, size_t length, size_t flags,
                       const char *where, dt_error *err)
{
    json_error_t problem;

    *out = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | flags, &problem);
    if (*out != NULL)
        return DT_OK;
    if (strstr(problem.text, "\\u0000") != NULL || strstr(problem.text, "NUL byte") != NULL)
        return DT_FAIL(
            err, DT_ERR_CORRUPT,
            "%s:%d:%d: a text has the character U+0000 (\\u0000), which is not supported", where,
            problem.line, problem.column);
    return DT_FAIL(err, DT_ERR_CORRUPT, "%s:%d:%d: not JSON: %s", where, problem.line,
                   problem.column, problem.text);
}

dt_status dt_json_parse(json_t **out, const char *text, size_t length, const char *where,
                        dt_error *err)
{
    return parse(out, text, length, 0, where, err);
}

dt_status dt_json_parse_with_nul(json_t **out, const char *text, size_t length, const char *where,
                                 dt_error *err)
{
    return parse(out, text, length, JSON_ALLOW_NUL, where, err);
}

dt_status dt_json_read(json_t **out, const char *path, size_t max_bytes, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    *out = NULL;
    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, path, max_bytes, err));
    DT_TRY(dt_json_parse(out, text.data, text.length, path, err));
out:
    dt_strbuf_release(&text);
    return st;
}

/* Appends JSON text; its integers of more than 18 characters get ".0", so that they are read as real numbers. */
static void widen_integers(dt_strbuf *out, const char *text, size_t length)
{
    bool quoted = false;
    size_t used;

    for (size_t i = 0; i < length; i += used) {
        size_t number = quoted ? 0 : strspn(text + i, "+-.eE0123456789");

        used = number > 0 ? number : quoted && text[i] == '\\' && i + 1 < length ? 2 : 1;
        dt_strbuf_add(out, text + i, used);
        if (number > 18 && strspn(text + i, "-0123456789") == number)
            dt_strbuf_add_str(out, ".0");
        quoted = quoted != (text[i] == '"');
    }
}

dt_status dt_json_read_foreign(json_t **out, const char *path, size_t max_bytes, dt_error *err)
{
    dt_strbuf text, widened;
    dt_status st = DT_OK;

    *out = NULL;
    dt_strbuf_init(&text);
    dt_strbuf_init(&widened);
    DT_TRY(dt_file_read(&text, path, max_bytes, err));
    widen_integers(&widened, text.data, text.length);
    DT_TRY(dt_json_parse(out, widened.data, widened.length, path, err));
out:
    dt_strbuf_release(&text);
    dt_strbuf_release(&widened);
    return st;
}

static dt_status wrong(const json_t *value, const char *key, const char *wanted, const char *where,
                       dt_error *err)
{
    return value == NULL
               ? DT_FAIL(err, DT_ERR_CORRUPT, "%s: '%s' is missing", where, key)
               : DT_FAIL(err, DT_ERR_CORRUPT, "%s: '%s': expected %s", where, key, wanted);
}

dt_status dt_json_get_object(json_t **out, const json_t *object, const char *key, const char *where,
                             dt_error *err)
{
    *out = json_object_get(object, key);
    return json_is_object(*out) ? DT_OK : wrong(*out, key, "an object", where, err);
}

dt_status dt_json_get_array(json_t **out, const json_t *object, const char *key, const char *where,
                            dt_error *err)
{
    *out = json_object_get(object, key);
    return json_is_array(*out) ? DT_OK : wrong(*out, key, "an array", where, err);
}

dt_status dt_json_get_string(const char **out, const json_t *object, const char *key,
                             const char *where, dt_error *err)
{
    const json_t *value = json_object_get(object, key);

    *out = json_string_value(value);
    return *out != NULL ? DT_OK : wrong(value, key, "a string", where, err);
}

dt_status dt_json_get_int(int64_t *out, const json_t *object, const char *key, const char *where,
                          dt_error *err)
{
    const json_t *value = json_object_get(object, key);

    *out = json_integer_value(value);
    return json_is_integer(value) ? DT_OK : wrong(value, key, "a whole number", where, err);
}

dt_status dt_json_get_bool(bool *out, const json_t *object, const char *key, const char *where,
                           dt_error *err)
{
    const json_t *value = json_object_get(object, key);

    *out = json_is_true(value);
    return json_is_boolean(value) ? DT_OK : wrong(value, key, "true or false", where, err);
}

dt_status dt_json_get_number(double *out, const json_t *object, const char *key, const char *where,
                             dt_error *err)
{
    const json_t *value = json_object_get(object, key);

    *out = json_is_null(value) ? NAN : json_number_value(value);
    return json_is_number(value) || json_is_null(value) ? DT_OK
                                                        : wrong(value, key, "a number", where, err);
}

dt_status dt_json_get_string_or(const char **out, const json_t *object, const char *key,
                                const char *fallback, const char *where, dt_error *err)
{
    *out = fallback;
    if (json_object_get(object, key) == NULL || json_is_null(json_object_get(object, key)))
        return DT_OK;
    return dt_json_get_string(out, object, key, where, err);
}

dt_status dt_json_get_int_or(int64_t *out, const json_t *object, const char *key, int64_t fallback,
                             const char *where, dt_error *err)
{
    *out = fallback;
    if (json_object_get(object, key) == NULL || json_is_null(json_object_get(object, key)))
        return DT_OK;
    return dt_json_get_int(out, object, key, where, err);
}

json_t *dt_json_text(const char *text)
{
    dt_strbuf valid;
    json_t *json;

    dt_strbuf_init(&valid);
    dt_utf8_add_valid(&valid, text, strlen(text));
    json = json_stringn(valid.data, valid.length);
    dt_strbuf_release(&valid);
    return json;
}

json_t *dt_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}
