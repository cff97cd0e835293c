#include "recipes/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

#define SHOWN_CHARACTERS 60

/* One code point of at most `left` bytes; returns its length, 0 where it is broken: cut off,
 * overlong, a surrogate, or beyond U+10FFFF (RFC 3629). */
static size_t decode(uint32_t *out, const char *text, size_t left)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)text;
    size_t length = byte[0] < 0x80   ? 1
                    : byte[0] < 0xc0 ? 0
                    : byte[0] < 0xe0 ? 2
                    : byte[0] < 0xf0 ? 3
                    : byte[0] < 0xf8 ? 4
                                     : 0;
    uint32_t code;

    if (length == 0 || length > left)
        return 0;
    code = length == 1 ? byte[0] : byte[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (byte[i] & 0x3f);
    }
    if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *out = code;
    return length;
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xfffe || code == 0xffff;
}

static bool is_blank_line(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at == end || *at == '\n' || *at == '\r';
}

static dt_status refuse_at(dt_error *err, const dt_mark *start, int line, int column,
                           const char *message)
{
    dt_mark mark = {start->source, line, column};

    DT_FAIL(err, DT_ERR_RECIPE, "%s", message);
    dt_mark_prefix(err, start->line > 0 ? &mark : start);
    return DT_ERR_RECIPE;
}

dt_status dt_text_check(const char *text, size_t length, const dt_mark *start, dt_error *err)
{
    const char *at = text, *end = text + length;
    int line = 1, column = 1;
    bool indent = true;
    char message[80];

    while (at < end) {
        uint32_t code;
        size_t bytes = decode(&code, at, (size_t)(end - at));

        if (bytes == 0) {
            snprintf(message, sizeof(message),
                     "broken UTF-8 (byte 0x%02x): save the file as UTF-8 text",
                     (unsigned)(unsigned char)*at);
            return refuse_at(err, start, line, column, message);
        }
        if (code == '\t' && indent && !is_blank_line(at, end))
            return refuse_at(err, start, line, column, "a tab in the indentation: use spaces");
        if (is_control(code) && code != '\t' && code != '\n' && code != '\r') {
            snprintf(message, sizeof(message), "control character U+%04X: this is not a text file",
                     (unsigned)code);
            return refuse_at(err, start, line, column, message);
        }
        at += bytes;
        column++;
        if (code != ' ' && code != '\t')
            indent = false;
        if (code == '\n' || (code == '\r' && (at == end || *at != '\n'))) {
            line++;
            column = 1;
            indent = true;
        }
    }
    return DT_OK;
}

bool dt_text_is_utf8(const char *text)
{
    size_t left = strlen(text), bytes;
    uint32_t code;

    for (; left > 0; text += bytes, left -= bytes)
        if ((bytes = decode(&code, text, left)) == 0)
            return false;
    return true;
}

void dt_text_show(dt_strbuf *out, const char *text)
{
    size_t left = strlen(text);

    dt_strbuf_add_char(out, '\'');
    for (int i = 0; left > 0 && i < SHOWN_CHARACTERS; i++) {
        uint32_t code;
        size_t bytes = decode(&code, text, left);

        if (bytes == 0 || is_control(code))
            dt_strbuf_add_char(out, '?');
        else
            dt_strbuf_add(out, text, bytes);
        text += bytes != 0 ? bytes : 1;
        left -= bytes != 0 ? bytes : 1;
    }
    dt_strbuf_add_str(out, left > 0 ? "...'" : "'");
}

void dt_mark_write(dt_strbuf *out, const dt_mark *mark)
{
    dt_strbuf_add_str(out, mark->source);
    if (mark->line > 0)
        dt_strbuf_add_fmt(out, ":%d:%d", mark->line, mark->column);
}

void dt_mark_prefix(dt_error *err, const dt_mark *mark)
{
    if (mark->line > 0)
        dt_error_prefix(err, "%s:%d:%d", mark->source, mark->line, mark->column);
    else
        dt_error_prefix(err, "%s", mark->source);
}
