/* json: parses JSON, reads members of objects with messages that name the place, and writes JSON. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/file.h"

/* --- parsing, and members of objects */

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

/* --- writing, directly into the buffer, in the format of jansson */

enum { INDENT = 2, COMPACT = -1 }; /* depth; COMPACT writes neither line breaks nor spaces */

static void write_value(dt_strbuf *out, const json_t *value, int depth);

/* Returns how a character of a string is escaped: 0 as it is, 'u' as \uXXXX, else backslash and this letter. */
static char escape_of(unsigned char c)
{
    static const char named[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

    if (c >= 0x20)
        return c == '"' || c == '\\' ? (char)c : '\0';
    return c < sizeof(named) && named[c] != '\0' ? named[c] : 'u';
}

static size_t count_plain(const char *bytes, size_t length)
{
    size_t count = 0;

    while (count < length && escape_of((unsigned char)bytes[count]) == '\0')
        count++;
    return count;
}

static void write_escaped(dt_strbuf *out, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t plain = count_plain(bytes, length);
        char escape = plain < length ? escape_of((unsigned char)bytes[plain]) : '\0';

        dt_strbuf_add(out, bytes, plain);
        if (escape == 'u')
            dt_strbuf_add_fmt(out, "\\u%04X", (unsigned)bytes[plain]);
        else if (escape != '\0')
            dt_strbuf_add(out, (char[]){'\\', escape}, 2);
        plain += escape != '\0';
        bytes += plain;
        length -= plain;
    }
}

static void write_string(dt_strbuf *out, const char *bytes, size_t length)
{
    size_t plain = count_plain(bytes, length);
    char *at = dt_strbuf_extend(out, plain + 1);

    *at = '"';
    memcpy(at + 1, bytes, plain);
    write_escaped(out, bytes + plain, length - plain);
    dt_strbuf_add_char(out, '"');
}

static void write_integer(dt_strbuf *out, json_int_t value)
{
    unsigned long long left =
        value < 0 ? 0ull - (unsigned long long)value : (unsigned long long)value;
    char text[24], *at = text + sizeof(text);

    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (value < 0)
        *--at = '-';
    dt_strbuf_add(out, at, (size_t)(text + sizeof(text) - at));
}

/* Writes 17 digits with a point or an exponent; the exponent has neither a plus sign nor leading zeros. */
static void write_real(dt_strbuf *out, double value)
{
    const char *exponent, *digits;
    char text[64];

    if (fabs(value) < 1e15 && value == trunc(value) && !signbit(value)) {
        write_integer(out, (json_int_t)value);
        dt_strbuf_add(out, ".0", 2);
        return;
    }
    snprintf(text, sizeof(text), "%.17g", value);
    exponent = strchr(text, 'e');
    if (exponent == NULL) {
        dt_strbuf_add_str(out, text);
        if (strchr(text, '.') == NULL)
            dt_strbuf_add_str(out, ".0");
        return;
    }
    digits = exponent + 1 + strspn(exponent + 1, "+-");
    dt_strbuf_add(out, text, (size_t)(exponent + 1 - text));
    if (exponent[1] == '-')
        dt_strbuf_add_char(out, '-');
    dt_strbuf_add_str(out, digits + strspn(digits, "0"));
}

static int below(int depth)
{
    return depth == COMPACT ? COMPACT : depth + 1;
}

static void write_break(dt_strbuf *out, int depth)
{
    static const char spaces[] = "                                ";
    size_t left = depth == COMPACT ? 0 : (size_t)depth * INDENT;

    if (depth == COMPACT)
        return;
    dt_strbuf_add_char(out, '\n');
    for (; left > sizeof(spaces) - 1; left -= sizeof(spaces) - 1)
        dt_strbuf_add(out, spaces, sizeof(spaces) - 1);
    dt_strbuf_add(out, spaces, left);
}

static void write_array(dt_strbuf *out, const json_t *array, int depth)
{
    const json_t *item;
    size_t at;

    dt_strbuf_add_char(out, '[');
    json_array_foreach(array, at, item) {
        if (at > 0)
            dt_strbuf_add_char(out, ',');
        write_break(out, below(depth));
        write_value(out, item, below(depth));
    }
    if (at > 0)
        write_break(out, depth);
    dt_strbuf_add_char(out, ']');
}

static void write_object(dt_strbuf *out, const json_t *object, int depth)
{
    bool first = true;
    const json_t *value;
    const char *key;

    dt_strbuf_add_char(out, '{');
    json_object_foreach((json_t *)object, key, value) {
        if (!first)
            dt_strbuf_add_char(out, ',');
        first = false;
        write_break(out, below(depth));
        write_string(out, key, strlen(key));
        dt_strbuf_add_str(out, depth == COMPACT ? ":" : ": ");
        write_value(out, value, below(depth));
    }
    if (!first)
        write_break(out, depth);
    dt_strbuf_add_char(out, '}');
}

static void write_value(dt_strbuf *out, const json_t *value, int depth)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        write_object(out, value, depth);
        break;
    case JSON_ARRAY:
        write_array(out, value, depth);
        break;
    case JSON_STRING:
        write_string(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        write_integer(out, json_integer_value(value));
        break;
    case JSON_REAL:
        write_real(out, json_real_value(value));
        break;
    case JSON_TRUE:
        dt_strbuf_add_str(out, "true");
        break;
    case JSON_FALSE:
        dt_strbuf_add_str(out, "false");
        break;
    case JSON_NULL:
        dt_strbuf_add_str(out, "null");
    }
}

void dt_json_write(dt_strbuf *out, const json_t *value)
{
    size_t from = out->length;

    if (value == NULL)
        return;
    write_value(out, value, COMPACT);
    dt_display_escape_json(out, from);
}

void dt_json_write_pretty(dt_strbuf *out, const json_t *value)
{
    size_t from = out->length;

    if (value != NULL)
        write_value(out, value, 0);
    dt_display_escape_json(out, from);
    dt_strbuf_add_char(out, '\n');
}

/* --- numbers as Python writes them, with the fewest digits that read back the same: dtrun's files have 17
 * digits (1.0000000000000001e-05 for 0.00001) */

static void add_number(dt_strbuf *out, double value)
{
    char digits[32];
    int count = 0, exponent;

    do
        snprintf(digits, sizeof(digits), "%.*e", count, value);
    while (strtod(digits, NULL) != value && ++count < 17);
    exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent > 15)
        dt_strbuf_add_str(out, digits);
    else
        dt_strbuf_add_fmt(out, "%.*f", count > exponent ? count - exponent : 1, value);
}

/* Returns the end of the string that begins at `text`. */
static const char *skip_string(const char *text)
{
    for (text++; *text != '"'; text++)
        if (*text == '\\')
            text++;
    return text + 1;
}

void dt_json_shorten(dt_strbuf *out, const char *text)
{
    while (*text != '\0') {
        size_t digits = strspn(text, "-+.0123456789eE"), other = strcspn(text, "\"-0123456789");

        if (*text == '"') {
            const char *end = skip_string(text);

            dt_strbuf_add(out, text, (size_t)(end - text));
            text = end;
        } else if (other > 0) { /* also skips "true": its e does not follow a digit */
            dt_strbuf_add(out, text, other);
            text += other;
        } else {
            if (strcspn(text, ".eE") < digits)
                add_number(out, strtod(text, NULL));
            else
                dt_strbuf_add(out, text, digits);
            text += digits;
        }
    }
}
