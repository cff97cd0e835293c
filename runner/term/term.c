/* term: detects what a terminal can show, formats text and numbers for it, and draws progress bars. */
#include "runner/term/term.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/display.h"
#include "base/memory.h"

/* Numbers in readable form. */

/* Writes three significant digits of value / 1000^n; returns n. */
static int scaled(char *out, size_t size, double value)
{
    int power = 0;

    while (value >= 999.5 && power < 5) {
        value /= 1000;
        power++;
    }
    if (power == 0)
        snprintf(out, size, "%.0f", value);
    else
        snprintf(out, size, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
    return power;
}

char *dt_format_count(char *out, size_t size, double value)
{
    static const char *const suffixes[] = {"", "k", "M", "G", "T", "P"};
    char digits[DT_FORMAT_SIZE];
    int power;

    if (!(value >= 0) || isinf(value)) {
        snprintf(out, size, "-");
        return out;
    }
    power = scaled(digits, sizeof(digits), value);
    snprintf(out, size, "%s%s", digits, suffixes[power]);
    return out;
}

char *dt_format_value(char *out, size_t size, double value)
{
    char digits[DT_FORMAT_SIZE];

    if (isnan(value))
        snprintf(out, size, "-");
    else if (fabs(value) >= 10000 && fabs(value) < 1e15)
        snprintf(out, size, "%s%s", value < 0 ? "-" : "",
                 dt_format_count(digits, sizeof(digits), fabs(value)));
    else
        snprintf(out, size, "%.5g", value);
    return out;
}

char *dt_format_bytes(char *out, size_t size, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    char digits[DT_FORMAT_SIZE];
    int power;

    if (!(bytes >= 0) || isinf(bytes)) {
        snprintf(out, size, "-");
        return out;
    }
    power = scaled(digits, sizeof(digits), bytes);
    snprintf(out, size, "%s %s", digits, units[power]);
    return out;
}

char *dt_format_whole(char *out, size_t size, int64_t value)
{
    char digits[DT_FORMAT_SIZE];
    size_t length, used = 0;

    snprintf(digits, sizeof(digits), "%lld", (long long)value);
    length = strlen(digits);
    for (size_t i = 0; i < length && used + 2 < size; i++) {
        out[used++] = digits[i];
        if (digits[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0)
            out[used++] = ',';
    }
    out[used] = '\0';
    return out;
}

char *dt_format_loss(char *out, size_t size, double value)
{
    if (isfinite(value))
        snprintf(out, size, "%.4f", value);
    else
        snprintf(out, size, isnan(value) ? "-" : "nan");
    return out;
}

char *dt_format_seconds(char *out, size_t size, double seconds)
{
    if (seconds >= 0 && seconds < 60)
        snprintf(out, size, "%ds", (int)seconds);
    else
        dt_clock_duration(out, size, floor(seconds));
    return out;
}

char *dt_format_ago(char *out, size_t size, int64_t then_ms, int64_t now_ms)
{
    int64_t seconds = (now_ms - then_ms) / 1000;

    if (then_ms <= 0)
        snprintf(out, size, "-");
    else if (seconds < 5)
        snprintf(out, size, "just now");
    else if (seconds < 60)
        snprintf(out, size, "%llds ago", (long long)seconds);
    else if (seconds < 3600)
        snprintf(out, size, "%lldm ago", (long long)(seconds / 60));
    else if (seconds < 48 * 3600)
        snprintf(out, size, "%lldh ago", (long long)(seconds / 3600));
    else
        snprintf(out, size, "%lldd ago", (long long)(seconds / 86400));
    return out;
}

#define RESET "\x1b[0m"

static const char *const styles[DT_STYLE_COUNT] = {
    [DT_STYLE_PLAIN] = "",          [DT_STYLE_BOLD] = "\x1b[1m",       [DT_STYLE_DIM] = "\x1b[2m",
    [DT_STYLE_ACCENT] = "\x1b[36m", [DT_STYLE_GOOD] = "\x1b[32m",      [DT_STYLE_WARN] = "\x1b[33m",
    [DT_STYLE_BAD] = "\x1b[31m",    [DT_STYLE_TRAINED] = "\x1b[4;32m",
};

/* Checks the locale variables in the order of setlocale. */
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
    term->rows = 24;
    if (!term->live || ioctl(term->fd, TIOCGWINSZ, &size) != 0)
        return;
    term->columns = size.ws_col > 0 ? size.ws_col : term->columns;
    term->rows = size.ws_row > 0 ? size.ws_row : term->rows;
}

/* Reads DTRUN_TERMINAL; false if it is not set. Such a terminal is never redrawn. */
static bool described(dt_term *out)
{
    const char *text = getenv("DTRUN_TERMINAL"), *size = text != NULL ? strchr(text, ':') : NULL;

    if (size == NULL || sscanf(size + 1, "%dx%d", &out->columns, &out->rows) != 2)
        return false;
    out->live = false;
    out->seen = strncmp(text, "terminal:", 9) == 0;
    out->colour = strstr(size, ":colour") != NULL;
    return true;
}

bool dt_term_is_seen(void)
{
    const char *text = getenv("DTRUN_TERMINAL");

    return text != NULL ? strncmp(text, "terminal:", 9) == 0 : isatty(STDOUT_FILENO);
}

void dt_term_init(dt_term *out, int fd)
{
    const char *kind = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    bool dumb = kind == NULL || kind[0] == '\0' || strcmp(kind, "dumb") == 0;

    out->fd = fd;
    out->live = out->seen = isatty(fd) && !dumb;
    out->colour = out->live && (no_colour == NULL || no_colour[0] == '\0');
    out->unicode = locale_is_utf8();
    if (!described(out))
        dt_term_measure(out);
}

/* Length of one of our style sequences at `text`; 0 if there is none. */
static size_t own_length(const char *text)
{
    if (text[0] != '\x1b')
        return 0;
    if (strncmp(text, RESET, sizeof(RESET) - 1) == 0)
        return sizeof(RESET) - 1;
    for (int i = DT_STYLE_PLAIN + 1; i < DT_STYLE_COUNT; i++)
        if (strncmp(text, styles[i], strlen(styles[i])) == 0)
            return strlen(styles[i]);
    return 0;
}

void dt_term_add(dt_strbuf *out, const dt_term *term, dt_style style, const char *fmt, ...)
{
    bool styled = term->colour && style != DT_STYLE_PLAIN;
    char short_text[256], *text = short_text;
    va_list args, again;
    size_t start;
    int length;

    va_start(args, fmt);
    va_copy(again, args);
    length = vsnprintf(short_text, sizeof(short_text), fmt, args);
    va_end(args);
    if (length >= (int)sizeof(short_text)) {
        text = dt_malloc((size_t)length + 1);
        vsnprintf(text, (size_t)length + 1, fmt, again);
    }
    va_end(again);

    if (styled)
        dt_strbuf_add_str(out, styles[style]);
    start = out->length;
    dt_display_add(out, text, strlen(text));
    for (char *tab = out->data + start; (tab = strchr(tab, '\t')) != NULL;)
        *tab = ' ';
    if (styled)
        dt_strbuf_add_str(out, RESET);
    if (text != short_text)
        free(text);
}

/* Finds the length of the next character or style sequence. Returns its columns. */
static size_t next_columns(size_t *length, bool *is_style, const char *text)
{
    *length = own_length(text);
    *is_style = *length > 0;
    if (*is_style)
        return 0;
    (void)dt_display_next(length, (const unsigned char *)text, strnlen(text, DT_UTF8_MAX));
    return dt_display_columns(text, *length);
}

size_t dt_term_width(const char *text)
{
    return dt_term_width_of(text, strlen(text));
}

size_t dt_term_width_of(const char *text, size_t bytes)
{
    size_t columns = 0, length;
    bool is_style;

    for (const char *end = text + bytes; text < end; text += length)
        columns += next_columns(&length, &is_style, text);
    return columns;
}

void dt_term_add_clipped(dt_strbuf *out, const dt_term *term, const char *text, size_t columns)
{
    size_t length;
    bool is_style;

    for (; *text != '\0'; text += length) {
        size_t taken = next_columns(&length, &is_style, text);

        if (taken > columns)
            break;
        columns -= taken;
        if (!is_style)
            dt_display_add(out, text, length);
        else if (term->colour)
            dt_strbuf_add(out, text, length);
    }
    if (*text != '\0' && term->colour)
        dt_strbuf_add_str(out, RESET);
}

void dt_term_add_whole(dt_strbuf *out, const dt_term *term, const char *text)
{
    while (*text != '\0') {
        size_t plain = strcspn(text, "\x1b"), own = own_length(text + plain);

        dt_display_add(out, text, plain);
        text += plain;
        if (own > 0 && term->colour)
            dt_strbuf_add(out, text, own);
        else if (own == 0 && *text != '\0')
            dt_strbuf_add_char(out, '?');
        text += own > 0 ? own : *text != '\0';
    }
}

size_t dt_term_fitting(const char *text, size_t columns)
{
    size_t used = 0, at = 0, blank = 0, length;
    bool is_style;

    while (text[at] != '\0' && text[at] != '\n') {
        size_t taken = next_columns(&length, &is_style, text + at);

        if (text[at] == ' ')
            blank = at;
        if (used + taken > columns && at > 0)
            return blank > 0 ? blank : at;
        used += taken;
        at += length;
    }
    return at;
}

void dt_term_add_wrapped(dt_strbuf *out, const dt_term *term, dt_style style, size_t indent,
                         size_t columns, const char *text)
{
    size_t room = columns > indent ? columns - indent : 1;

    while (*text != '\0') {
        size_t length = columns > 0 ? dt_term_fitting(text, room) : strcspn(text, "\n");

        dt_strbuf_add_fmt(out, "%*s", (int)indent, "");
        dt_term_add(out, term, style, "%.*s", (int)length, text);
        dt_strbuf_add_char(out, '\n');
        text += length;
        text += strspn(text, " \n");
    }
}

static void add_repeated(dt_strbuf *out, const char *text, size_t times)
{
    while (times-- > 0)
        dt_strbuf_add_str(out, text);
}

void dt_bar_add(dt_strbuf *out, const dt_term *term, dt_style style, double share, size_t columns)
{
    double clamped = !(share > 0) ? 0 : share > 1 ? 1 : share;
    size_t halves = (size_t)(clamped * 2 * (double)columns), full = halves / 2;
    dt_strbuf done, left;

    dt_strbuf_init(&done);
    dt_strbuf_init(&left);
    add_repeated(&done, term->unicode ? "━" : "#", full);
    if (term->unicode && halves % 2 == 1) {
        add_repeated(&done, "╸", 1);
        full++;
    }
    add_repeated(&left, term->unicode ? "─" : "-", columns - full);
    if (done.length > 0)
        dt_term_add(out, term, style, "%s", done.data);
    if (left.length > 0)
        dt_term_add(out, term, DT_STYLE_DIM, "%s", left.data);
    dt_strbuf_release(&done);
    dt_strbuf_release(&left);
}
