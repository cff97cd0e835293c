#include "recipes/fields/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/display.h"

#define SHOWN_CHARACTERS 60

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xfffe || code == 0xffff;
}

/* Returns whether the character looks like a space or is invisible, but YAML does not treat it as a space. */
static bool is_unseen(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0xa0, 0xa0},      {0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},
                  {0x1680, 0x1680},  {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f},
                  {0x205f, 0x206f},  {0x3000, 0x3000}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
                  {0xe0000, 0xe007f}};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

void dt_text_unseen_name(dt_strbuf *out, uint32_t code)
{
    const char *name = "invisible character";

    if (code == 0xa0 || code == 0x202f)
        name = "no-break space";
    else if (code == 0x200b || code == 0xfeff)
        name = "zero-width space";
    else if (code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x205f ||
             code == 0x3000)
        name = "wide or narrow space";
    else if (code == 0xad)
        name = "soft hyphen";
    dt_strbuf_add_fmt(out, "%s U+%04X", name, (unsigned)code);
}

static bool is_blank_line(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at == end || *at == '\n' || *at == '\r';
}

static dt_status refuse_at(dt_error *err, const dt_text_mark *start, int line, int column,
                           const char *message)
{
    dt_text_mark mark = {start->source, line, column};

    DT_FAIL(err, DT_ERR_RECIPE, "%s", message);
    dt_text_mark_prefix(err, start->line > 0 ? &mark : start);
    return DT_ERR_RECIPE;
}

dt_status dt_text_check(const char *text, size_t length, const dt_text_mark *start, dt_error *err)
{
    const char *at = text, *end = text + length;
    int line = 1, column = 1;
    bool indent = true;
    char message[80];

    while (at < end) {
        uint32_t code;
        size_t bytes = dt_utf8_decode(&code, (const unsigned char *)at, (size_t)(end - at));

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
        if (code == 0x2028 || code == 0x2029) {
            snprintf(message, sizeof(message), "line separator U+%04X: use a plain line break",
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

const char *dt_text_find_unseen(uint32_t *code, const char *text, size_t length, dt_text_mark *mark)
{
    const char *end = text + length;

    while (text < end) {
        size_t bytes = dt_utf8_decode(code, (const unsigned char *)text, (size_t)(end - text));

        if (bytes == 0 || is_unseen(*code))
            return bytes != 0 ? text : NULL;
        text += bytes;
        mark->column++;
        if (*code == '\n' || (*code == '\r' && (text == end || *text != '\n'))) {
            mark->line++;
            mark->column = 1;
        }
    }
    return NULL;
}

bool dt_text_is_utf8(const char *text)
{
    size_t left = strlen(text), bytes;
    uint32_t code;

    for (; left > 0; text += bytes, left -= bytes)
        if ((bytes = dt_utf8_decode(&code, (const unsigned char *)text, left)) == 0)
            return false;
    return true;
}

void dt_text_show(dt_strbuf *out, const char *text)
{
    size_t left = strlen(text);

    dt_strbuf_add_char(out, '\'');
    for (int i = 0; left > 0 && i < SHOWN_CHARACTERS; i++) {
        uint32_t code;
        size_t bytes = dt_utf8_decode(&code, (const unsigned char *)text, left);

        if (bytes == 0 || is_control(code))
            dt_strbuf_add_char(out, '?');
        else if (is_unseen(code))
            dt_strbuf_add_fmt(out, "<U+%04X>", (unsigned)code);
        else
            dt_strbuf_add(out, text, bytes);
        text += bytes != 0 ? bytes : 1;
        left -= bytes != 0 ? bytes : 1;
    }
    dt_strbuf_add_str(out, left > 0 ? "...'" : "'");
}

void dt_text_show_word(dt_strbuf *out, const char *text)
{
    size_t left = strlen(text), bytes = 1;

    dt_text_show(out, text);
    for (int i = 1; left > 0 && i <= SHOWN_CHARACTERS; i++, text += bytes, left -= bytes) {
        uint32_t code;

        bytes = dt_utf8_decode(&code, (const unsigned char *)text, left);
        if (bytes > 1 && !is_control(code) && !is_unseen(code)) {
            dt_strbuf_add_fmt(out, ", with U+%04X as character %d", (unsigned)code, i);
            return;
        }
        bytes = bytes != 0 ? bytes : 1;
    }
}

void dt_text_mark_write(dt_strbuf *out, const dt_text_mark *mark)
{
    dt_strbuf_add_str(out, mark->source);
    if (mark->line > 0)
        dt_strbuf_add_fmt(out, ":%d:%d", mark->line, mark->column);
}

void dt_text_mark_prefix(dt_error *err, const dt_text_mark *mark)
{
    if (mark->line > 0)
        dt_error_prefix(err, "%s:%d:%d", mark->source, mark->line, mark->column);
    else
        dt_error_prefix(err, "%s", mark->source);
}

bool dt_text_mark_read(dt_text_mark *out, const char *message, const char *source)
{
    size_t length = strlen(source);
    int line = 0, column = 0, bytes = 0;

    if (strncmp(message, source, length) != 0 || message[length] != ':')
        return false;
    if (sscanf(message + length, ":%d:%d:%n", &line, &column, &bytes) != 2 || bytes == 0 ||
        line < 1 || column < 1)
        line = column = 0;
    *out = (dt_text_mark){source, line, column};
    return true;
}

const char *dt_text_without_mark(const char *message, const dt_text_mark *mark)
{
    dt_strbuf written;
    size_t length;

    if (mark->source == NULL)
        return message;
    dt_strbuf_init(&written);
    dt_text_mark_write(&written, mark);
    length = written.length;
    if (strncmp(message, written.data, length) == 0 && strncmp(message + length, ": ", 2) == 0)
        message += length + 2;
    dt_strbuf_release(&written);
    return message;
}
