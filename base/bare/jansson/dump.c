/* Writing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bare/jansson/jansson_int.h"
#include "base/strbuf.h"

#include "base/banned.h"

static void write_value(dt_strbuf *out, const json_t *json, size_t flags, int depth);

static void write_string(dt_strbuf *out, const char *bytes, size_t length)
{
    static const char special[] = "\"\\\b\f\n\r\t", escapes[] = "\"\\bfnrt";

    dt_strbuf_add_char(out, '"');
    for (size_t i = 0; i < length; i++) {
        const char *found = bytes[i] != '\0' ? strchr(special, bytes[i]) : NULL;

        if (found != NULL)
            dt_strbuf_add_fmt(out, "\\%c", escapes[found - special]);
        else if ((unsigned char)bytes[i] < 0x20)
            dt_strbuf_add_fmt(out, "\\u%04X", bytes[i]);
        else
            dt_strbuf_add_char(out, bytes[i]);
    }
    dt_strbuf_add_char(out, '"');
}

/* As "%g" has it, but with a point or an exponent always, and that without plus and zeros. */
static void write_real(dt_strbuf *out, double value, size_t flags)
{
    int precision = (int)(flags >> 11 & 0x1f);
    const char *exponent, *digits;
    char text[64];

    snprintf(text, sizeof(text), "%.*g", precision != 0 ? precision : 17, value);
    exponent = strchr(text, 'e');
    if (exponent == NULL) {
        dt_strbuf_add_fmt(out, "%s%s", text, strchr(text, '.') == NULL ? ".0" : "");
        return;
    }
    digits = exponent + 1 + strspn(exponent + 1, "+-");
    dt_strbuf_add(out, text, (size_t)(exponent + 1 - text));
    dt_strbuf_add_fmt(out, "%s%s", exponent[1] == '-' ? "-" : "", digits + strspn(digits, "0"));
}

static void write_break(dt_strbuf *out, size_t flags, int depth, bool after_comma)
{
    int indent = (int)(flags & 0x1f);

    if (indent != 0)
        dt_strbuf_add_fmt(out, "\n%*s", depth * indent, "");
    else if (after_comma && (flags & JSON_COMPACT) == 0)
        dt_strbuf_add_char(out, ' ');
}

static void write_array(dt_strbuf *out, const json_t *array, size_t flags, int depth)
{
    const json_t *item;
    size_t at;

    dt_strbuf_add_char(out, '[');
    json_array_foreach(array, at, item)
    {
        if (at > 0)
            dt_strbuf_add_char(out, ',');
        write_break(out, flags, depth + 1, at > 0);
        write_value(out, item, flags, depth + 1);
    }
    if (at > 0)
        write_break(out, flags, depth, false);
    dt_strbuf_add_char(out, ']');
}

static void write_object(dt_strbuf *out, const json_t *object, size_t flags, int depth)
{
    bool first = true;
    const json_t *value;
    const char *key;

    dt_strbuf_add_char(out, '{');
    json_object_foreach(object, key, value)
    {
        if (!first)
            dt_strbuf_add_char(out, ',');
        write_break(out, flags, depth + 1, !first);
        write_string(out, key, strlen(key));
        dt_strbuf_add_str(out, (flags & JSON_COMPACT) != 0 ? ":" : ": ");
        write_value(out, value, flags, depth + 1);
        first = false;
    }
    if (!first)
        write_break(out, flags, depth, false);
    dt_strbuf_add_char(out, '}');
}

static void write_value(dt_strbuf *out, const json_t *json, size_t flags, int depth)
{
    switch (json->type) {
    case JSON_OBJECT:
        write_object(out, json, flags, depth);
        break;
    case JSON_ARRAY:
        write_array(out, json, flags, depth);
        break;
    case JSON_STRING:
        write_string(out, json->as.string.bytes, json->as.string.length);
        break;
    case JSON_INTEGER:
        dt_strbuf_add_fmt(out, "%lld", json->as.integer);
        break;
    case JSON_REAL:
        write_real(out, json->as.real, flags);
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

char *json_dumps(const json_t *json, size_t flags)
{
    dt_strbuf out;

    if (json == NULL ||
        ((flags & JSON_ENCODE_ANY) == 0 && !json_is_object(json) && !json_is_array(json)))
        return NULL;
    dt_strbuf_init(&out);
    write_value(&out, json, flags, 0);
    return dt_strbuf_detach(&out);
}
