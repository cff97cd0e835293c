#include "base/display.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

#define ESC 0x1b
#define BEL 0x07

static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x0000, 0x0008}, {0x000b, 0x001f}, {0x007f, 0x009f}, {0x061c, 0x061c},   {0x200e, 0x200f},
    {0x2028, 0x202e}, {0x2066, 0x206f}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

static bool is_hidden(uint32_t code)
{
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        if (code >= hidden[i].first && code <= hidden[i].last)
            return true;
    return false;
}

dt_display_kind dt_display_next(size_t *length, const unsigned char *at, size_t left)
{
    uint32_t code = 0;

    *length = dt_utf8_decode(&code, at, left);
    if (*length == 0) {
        *length = 1;
        return DT_DISPLAY_BROKEN;
    }
    return is_hidden(code) ? DT_DISPLAY_CONTROL : DT_DISPLAY_PLAIN;
}

void dt_display_add(dt_strbuf *out, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    size_t step;

    for (; at < end; at += step) {
        if (dt_display_next(&step, at, (size_t)(end - at)) == DT_DISPLAY_PLAIN)
            dt_strbuf_add(out, at, step);
        else
            dt_strbuf_add_char(out, '?');
    }
}

/* Returns the length of a string sequence, up to BEL or ESC \; 0 if it does not end. */
static size_t string_end(const unsigned char *at, size_t left)
{
    for (size_t i = 2; i < left; i++) {
        if (at[i] == BEL)
            return i + 1;
        if (at[i] == ESC)
            return i + 1 < left && at[i + 1] == '\\' ? i + 2 : 0;
    }
    return 0;
}

/* Returns the length of the complete terminal sequence at `at`, else 0: ESC [ ... letter
 * (CSI); ESC ] and ESC P X ^ _ ... BEL or ESC \ (OSC and other strings). */
static size_t sequence_length(const unsigned char *at, size_t left)
{
    size_t i = 2;

    if (left < 3 || at[0] != ESC)
        return 0;
    if (strchr("]PX^_", at[1]) != NULL && at[1] != '\0')
        return string_end(at, left);
    if (at[1] != '[')
        return 0;
    while (i < left && at[i] >= 0x20 && at[i] < 0x40)
        i++;
    return i < left && at[i] >= 0x40 && at[i] < 0x7f ? i + 1 : 0;
}

void dt_display_add_page(dt_strbuf *out, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    size_t step;

    for (; at < end; at += step) {
        step = sequence_length(at, (size_t)(end - at));
        if (step > 0)
            continue;
        switch (dt_display_next(&step, at, (size_t)(end - at))) {
        case DT_DISPLAY_PLAIN:
            dt_strbuf_add(out, at, step);
            break;
        case DT_DISPLAY_BROKEN:
            dt_strbuf_add_str(out, DT_UTF8_REPLACEMENT);
            break;
        case DT_DISPLAY_CONTROL:
            break;
        }
    }
}

static bool is_ascii(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] >= 0x7f)
            return false;
    return true;
}

static void add_escape(dt_strbuf *out, uint32_t code)
{
    if (code >= 0x10000)
        dt_strbuf_add_fmt(out, "\\u%04x\\u%04x", 0xd800u + ((code - 0x10000) >> 10),
                          0xdc00u + ((code - 0x10000) & 0x3ff));
    else
        dt_strbuf_add_fmt(out, "\\u%04x", code);
}

void dt_display_escape_json(dt_strbuf *json, size_t from)
{
    const unsigned char *at, *end;
    dt_strbuf raw;
    size_t step;

    if (is_ascii(json->data + from, json->length - from))
        return; /* the JSON writer escapes controls that follow */
    dt_strbuf_init(&raw);
    dt_strbuf_add(&raw, json->data + from, json->length - from);
    json->length = from;
    json->data[from] = '\0';
    at = (const unsigned char *)raw.data;
    end = at + raw.length;
    for (; at < end; at += step) {
        uint32_t code = 0;

        step = dt_utf8_decode(&code, at, (size_t)(end - at));
        /* Such characters occur only inside strings. */
        if (step > 0 && code >= 0x7f && is_hidden(code))
            add_escape(json, code);
        else
            dt_strbuf_add(json, at, step > 0 ? step : 1);
        step += step == 0;
    }
    dt_strbuf_release(&raw);
}
