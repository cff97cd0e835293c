/* json_write: writes values as text directly into the buffer, in the format of jansson. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/display.h"
#include "base/json.h"

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
