/* Strings: escapes undone, UTF-8 checked. */
#include "base/bare/jansson/parse_string.h"

#include <string.h>

#include "base/bare/jansson/jansson_int.h"

#include "base/banned.h"

/* With the character that is wrong read. */
static bool refuse_next(dt_json_parser *p, const char *why)
{
    if (p->at < p->end)
        p->at++;
    return dt_json_refuse(p, why);
}

static bool read_hex(dt_json_parser *p, uint32_t *out)
{
    static const char digits[] = "0123456789abcdef";

    *out = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        const char *digit = NULL;

        if (p->at < p->end && *p->at != '\0')
            digit = strchr(digits, *p->at >= 'A' && *p->at <= 'F' ? *p->at - 'A' + 'a' : *p->at);
        if (digit == NULL)
            return refuse_next(p, "expected four hex digits");
        *out = *out << 4 | (uint32_t)(digit - digits);
    }
    return true;
}

static void add_point(dt_strbuf *out, uint32_t point)
{
    char bytes[4] = {(char)(0xf0 | point >> 18), (char)(0x80 | (point >> 12 & 0x3f)),
                     (char)(0x80 | (point >> 6 & 0x3f)), (char)(0x80 | (point & 0x3f))};

    if (point < 0x80) {
        dt_strbuf_add_char(out, (char)point);
    } else if (point < 0x800) {
        bytes[2] = (char)(0xc0 | point >> 6);
        dt_strbuf_add(out, bytes + 2, 2);
    } else if (point < 0x10000) {
        bytes[1] = (char)(0xe0 | point >> 12);
        dt_strbuf_add(out, bytes + 1, 3);
    } else {
        dt_strbuf_add(out, bytes, 4);
    }
}

/* Behind "\u": a character, or a pair of surrogates that is one. */
static bool read_point(dt_json_parser *p, dt_strbuf *out)
{
    uint32_t point, low;

    if (!read_hex(p, &point))
        return false;
    if (point >= 0xd800 && point <= 0xdbff) {
        if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
            return dt_json_refuse(p, "half of a surrogate pair");
        p->at += 2;
        if (!read_hex(p, &low))
            return false;
        if (low < 0xdc00 || low > 0xdfff)
            return dt_json_refuse(p, "half of a surrogate pair");
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    } else if (point >= 0xdc00 && point <= 0xdfff) {
        return dt_json_refuse(p, "half of a surrogate pair");
    }
    if (point == 0)
        return dt_json_refuse(p, "\\u0000 is not allowed");
    add_point(out, point);
    return true;
}

static bool read_escape(dt_json_parser *p, dt_strbuf *out)
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *escape = NULL;

    if (p->at < p->end && *p->at == 'u') {
        p->at++;
        return read_point(p, out);
    }
    if (p->at < p->end && *p->at != '\0')
        escape = strchr(escapes, *p->at);
    if (escape == NULL)
        return refuse_next(p, "unknown escape");
    p->at++;
    dt_strbuf_add_char(out, meant[escape - escapes]);
    return true;
}

bool dt_json_parse_string(dt_json_parser *p, dt_strbuf *out)
{
    while (p->at < p->end && *p->at != '"') {
        size_t length;

        if (*p->at == '\\') {
            p->at++;
            if (!read_escape(p, out))
                return false;
            continue;
        }
        if ((unsigned char)*p->at < 0x20)
            return dt_json_refuse(p, "a control character in a string");
        length = dt_json_utf8_length(p->at, (size_t)(p->end - p->at));
        if (length == 0)
            return dt_json_refuse(p, "not UTF-8");
        dt_strbuf_add(out, p->at, length);
        p->at += length;
    }
    if (p->at == p->end)
        return dt_json_refuse(p, "a string without end");
    p->at++;
    return true;
}
