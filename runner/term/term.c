#define _GNU_SOURCE
#include "runner/term/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/banned.h"

#define RESET "\x1b[0m"

static const char *const styles[DT_STYLE_COUNT] = {
    [DT_STYLE_PLAIN] = "",          [DT_STYLE_BOLD] = "\x1b[1m",  [DT_STYLE_DIM] = "\x1b[2m",
    [DT_STYLE_ACCENT] = "\x1b[36m", [DT_STYLE_GOOD] = "\x1b[32m", [DT_STYLE_WARN] = "\x1b[33m",
    [DT_STYLE_BAD] = "\x1b[31m",
};

/* The locale variables in the order that setlocale looks at them. */
static bool locale_is_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

void dt_term_measure(dt_term *term)
{
    struct winsize size;

    term->columns = 80;
    if (term->live && ioctl(term->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        term->columns = size.ws_col;
}

void dt_term_init(dt_term *out, int fd)
{
    const char *kind = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    bool dumb = kind == NULL || kind[0] == '\0' || strcmp(kind, "dumb") == 0;

    out->fd = fd;
    out->live = isatty(fd) && !dumb;
    out->colour = out->live && (no_colour == NULL || no_colour[0] == '\0');
    out->unicode = locale_is_utf8();
    dt_term_measure(out);
}

static char harmless(char c)
{
    unsigned char byte = (unsigned char)c;

    if (byte == '\t')
        return ' ';
    return (byte < 0x20 && byte != '\n') || byte == 0x7f ? '?' : c;
}

void dt_term_add(dt_strbuf *out, const dt_term *term, dt_style style, const char *fmt, ...)
{
    bool styled = term->colour && style != DT_STYLE_PLAIN;
    char short_text[256], *text = short_text;
    va_list args, again;
    int length;

    va_start(args, fmt);
    va_copy(again, args);
    length = vsnprintf(short_text, sizeof(short_text), fmt, args);
    va_end(args);
    if (length >= (int)sizeof(short_text)) {
        text = malloc((size_t)length + 1);
        if (text != NULL)
            vsnprintf(text, (size_t)length + 1, fmt, again);
        else
            text = short_text;
    }
    va_end(again);

    if (styled)
        dt_strbuf_add_str(out, styles[style]);
    for (const char *c = text; *c != '\0'; c++)
        dt_strbuf_add_char(out, harmless(*c));
    if (styled)
        dt_strbuf_add_str(out, RESET);
    if (text != short_text)
        free(text);
}

/* The length of the escape sequence at `text` ("ESC [ ... letter"), 0 where there is none. */
static size_t escape_length(const char *text)
{
    size_t i = 2;

    if (text[0] != '\x1b' || text[1] != '[')
        return 0;
    while (text[i] != '\0' && (text[i] < '@' || text[i] > '~'))
        i++;
    return text[i] == '\0' ? i : i + 1;
}

/* The length of the UTF-8 character at `text`, taking stray bytes for characters of one. */
static size_t character_length(const char *text)
{
    size_t i = 1;

    if (((unsigned char)text[0] & 0xc0) == 0xc0)
        while (((unsigned char)text[i] & 0xc0) == 0x80)
            i++;
    return i;
}

size_t dt_term_width(const char *text)
{
    size_t columns = 0;

    while (*text != '\0') {
        size_t escape = escape_length(text);
        text += escape > 0 ? escape : character_length(text);
        columns += escape == 0;
    }
    return columns;
}

void dt_term_add_clipped(dt_strbuf *out, const dt_term *term, const char *text, size_t columns)
{
    while (*text != '\0') {
        size_t escape = escape_length(text);
        size_t length = escape > 0 ? escape : character_length(text);
        if (escape == 0 && columns-- == 0)
            break;
        dt_strbuf_add(out, text, length);
        text += length;
    }
    if (*text != '\0' && term->colour)
        dt_strbuf_add_str(out, RESET);
}
