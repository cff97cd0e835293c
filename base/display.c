/* display: UTF-8, dangerous characters, the width of text on a terminal, and cells of CSV. */
#include "base/display.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/error.h"

/* --- UTF-8 */

size_t dt_utf8_decode(uint32_t *code, const unsigned char *at, size_t left)
{
    static const uint32_t smallest[DT_UTF8_MAX + 1] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t value;
    size_t length;

    if (left == 0)
        return 0;
    if (at[0] < 0x80) {
        *code = at[0];
        return 1;
    }
    if (at[0] >= 0xc2 && at[0] < 0xe0) {
        length = 2;
        value = at[0] & 0x1fu;
    } else if (at[0] >= 0xe0 && at[0] < 0xf0) {
        length = 3;
        value = at[0] & 0x0fu;
    } else if (at[0] >= 0xf0 && at[0] < 0xf5) {
        length = 4;
        value = at[0] & 0x07u;
    } else {
        return 0;
    }
    if (left < length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (at[i] & 0x3fu);
    }
    if (value < smallest[length] || value >= DT_UTF8_CODES || (value >= 0xd800 && value < 0xe000))
        return 0;
    *code = value;
    return length;
}

size_t dt_utf8_encode(char *out, uint32_t code)
{
    DT_ASSERT(code < DT_UTF8_CODES);
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

void dt_utf8_add_valid(dt_strbuf *out, const char *text, size_t length)
{
    for (size_t at = 0; at < length; at++) { /* continues after an invalid byte */
        size_t valid = dt_utf8_valid_length(text + at, length - at);

        dt_strbuf_add(out, text + at, valid);
        at += valid;
        if (at < length)
            dt_strbuf_add_str(out, DT_UTF8_REPLACEMENT);
    }
}

/* Returns the first place from `at` on where the next eight bytes, or the last ones, are not all ASCII. Compares 64
 * bytes at a time, then eight. */
static size_t skip_ascii(const unsigned char *bytes, size_t at, size_t length)
{
    const uint64_t high = 0x8080808080808080ull;
    uint64_t block[8];

    for (; at + sizeof(block) <= length; at += sizeof(block)) {
        uint64_t any = 0;

        memcpy(block, bytes + at, sizeof(block));
        for (int i = 0; i < 8; i++)
            any |= block[i];
        if ((any & high) != 0)
            break;
    }
    for (; at + 8 <= length; at += 8) {
        memcpy(block, bytes + at, 8);
        if ((block[0] & high) != 0)
            break;
    }
    return at;
}

size_t dt_utf8_valid_length(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t code;
    size_t used;

    for (size_t at = 0; at < length; at += used) {
        if (bytes[at] < 0x80)
            at = skip_ascii(bytes, at, length);
        used = at < length ? dt_utf8_decode(&code, bytes + at, length - at) : 1;
        if (used == 0)
            return at;
    }
    return length;
}

/* --- dangerous characters */

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

static bool is_plain_ascii(const char *text, size_t length)
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

    if (is_plain_ascii(json->data + from, json->length - from))
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

/* --- the width of text, with wcwidth in a C.UTF-8 locale that is used for nothing else: the program's
 * locale decides how numbers are written. Without C.UTF-8 every character counts as one column. */

static size_t columns_of(const unsigned char *at, size_t left, size_t *length)
{
    uint32_t code = 0;
    int width;

    if (dt_display_next(length, at, left) != DT_DISPLAY_PLAIN)
        return 1; /* '?' */
    dt_utf8_decode(&code, at, left);
    width = code == '\t' ? 1 : wcwidth((wchar_t)code);
    return width >= 0 ? (size_t)width : 1;
}

/* Returns true for ASCII text, where each byte is one column and no locale is needed. */
static bool is_ascii(const unsigned char *at, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (at[i] >= 0x80)
            return false;
    return true;
}

size_t dt_display_columns(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    size_t columns = 0, step;
    locale_t wide, before;

    if (is_ascii(at, length))
        return length;
    wide = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    before = wide != (locale_t)0 ? uselocale(wide) : (locale_t)0;
    for (; at < end; at += step)
        columns += columns_of(at, (size_t)(end - at), &step);
    if (wide != (locale_t)0) {
        uselocale(before);
        freelocale(wide);
    }
    return columns;
}

/* --- cells of CSV */

void dt_csv_add_text(dt_strbuf *out, const char *text)
{
    bool formula = text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL;
    bool quoted = formula || text[strcspn(text, ",\"\r\n")] != '\0';

    if (!quoted) {
        dt_strbuf_add_str(out, text);
        return;
    }
    dt_strbuf_add_str(out, formula ? "\"'" : "\"");
    for (; *text != '\0'; text++) {
        if (*text == '"')
            dt_strbuf_add_char(out, '"');
        dt_strbuf_add_char(out, *text);
    }
    dt_strbuf_add_char(out, '"');
}

/* --- numbers */

static bool reads_back(char *out, size_t size, double value, int digits)
{
    snprintf(out, size, "%.*g", digits, value);
    return strtod(out, NULL) == value;
}

/* Finds the fewest digits that read back by binary search: more digits are never farther from the
 * value. Powers of two are searched linearly, because their lower neighbour is closer than the
 * upper one. */
char *dt_format_exact(char *out, size_t size, double value)
{
    int low = 6, high = 17, exponent;

    if (isnan(value)) {
        snprintf(out, size, "nan");
        return out;
    }
    if (reads_back(out, size, value, low) || isinf(value))
        return out;
    if (fabs(frexp(value, &exponent)) == 0.5) {
        while (!reads_back(out, size, value, ++low) && low < high)
            ;
        return out;
    }
    while (high - low > 1) { /* low does not read back, high does */
        int middle = (low + high) / 2;

        if (reads_back(out, size, value, middle))
            high = middle;
        else
            low = middle;
    }
    snprintf(out, size, "%.*g", high, value);
    return out;
}
