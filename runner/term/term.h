/* term: detects what the terminal of a descriptor can show, formats text and numbers for it, and draws
 * progress bars.
 *
 * Colour     on a terminal, unless NO_COLOR is set (to anything but "") or TERM is dumb
 * Unicode    if the locale is UTF-8; else only ASCII is drawn
 * Remote     when a server runs the command for a remote user (web/command.h), DTRUN_TERMINAL describes the remote
 *            terminal: "terminal:120x40:colour", "file:80x24"
 * Ownership  a dt_term holds no resources; returned strings are static
 */
#ifndef DT_RUNNER_TERM_TERM_H
#define DT_RUNNER_TERM_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_term {
    int fd;
    bool seen;    /* a terminal, local or remote: lines must fit into `columns` */
    bool live;    /* a local terminal that can be redrawn */
    bool colour;  /* escape sequences are allowed */
    bool unicode; /* bars and dots beyond ASCII */
    int columns;  /* 80 if unknown */
    int rows;     /* 24 if unknown */
} dt_term;

/* Meaning of text; term.c decides how it looks. */
typedef enum dt_style {
    DT_STYLE_PLAIN,
    DT_STYLE_BOLD,
    DT_STYLE_DIM,
    DT_STYLE_ACCENT,
    DT_STYLE_GOOD,
    DT_STYLE_WARN,
    DT_STYLE_BAD,
    DT_STYLE_COUNT
} dt_style;

void dt_term_init(dt_term *out, int fd);
/* Whether stdout is shown on a terminal, local or remote. */
bool dt_term_is_seen(void);
/* Reads the size again, after a window may have been resized. */
void dt_term_measure(dt_term *term);

/* Adds formatted text in a style. Control characters (base/display.h) become '?' and tabs become
 * spaces, so that no log line or name can control the terminal. */
void dt_term_add(dt_strbuf *out, const dt_term *term, dt_style style, const char *fmt, ...)
    DT_PRINTF(4, 5);

/* Adds text in a style, wrapped to lines of at most `columns` columns, each after `indent` spaces
 * and with a line feed. Lines break at spaces, or within a word that is longer than a line. columns
 * 0: one line. */
void dt_term_add_wrapped(dt_strbuf *out, const dt_term *term, dt_style style, size_t indent,
                         size_t columns, const char *text);

/* Columns of text, or of its first bytes: our styles take none, a character dt_display_columns. */
size_t dt_term_width(const char *text);
size_t dt_term_width_of(const char *text, size_t bytes);
/* Returns the bytes of the text that fit into `columns` and end before a blank or a line feed; at least one character. */
size_t dt_term_fitting(const char *text, size_t columns);

/* Adds text that may contain styles of dt_term_add. All other escape sequences are replaced, and
 * without colour the styles are removed. */
void dt_term_add_whole(dt_strbuf *out, const dt_term *term, const char *text);

/* The same, clipped to `columns`; styles stay whole and are reset at the end. */
void dt_term_add_clipped(dt_strbuf *out, const dt_term *term, const char *text, size_t columns);

/* format: writes numbers in readable form.
 *
 * Each function writes into `out` of `size` bytes (DT_FORMAT_SIZE suffices for all) and returns out, so that calls
 * can be printf arguments. A missing value (NaN, negative sizes) is "-", and
 * an infinite loss "nan".
 */

#define DT_FORMAT_SIZE 32

/* 950, 12.3k, 4.56M, 1.24G: three significant digits. */
char *dt_format_count(char *out, size_t size, double value);
/* 950 B, 12.3 kB, 4.56 MB: in powers of 1000. */
char *dt_format_bytes(char *out, size_t size, double bytes);
/* 1.8421, -0.0126, 3e-05, 240k, -8.44k: a number of any size, of a metric that can be anything. */
char *dt_format_value(char *out, size_t size, double value);
/* 12,345 */
char *dt_format_whole(char *out, size_t size, int64_t value);
/* 1.8421; four digits after the point. */
char *dt_format_loss(char *out, size_t size, double value);
/* 0s, 59s, 1m02s, 3h05m: whole seconds, for live views. */
char *dt_format_seconds(char *out, size_t size, double seconds);
/* "just now", "5m ago", "3h ago", "12d ago". */
char *dt_format_ago(char *out, size_t size, int64_t then_ms, int64_t now_ms);
/* The shortest text that reads back as the same double; "nan", "inf", "-inf". */
char *dt_format_exact(char *out, size_t size, double value);

/* bar: draws a progress bar of a given width.
 *
 *   ━━━━━━━━━━━━╸─────────────   or   ############-------------   without Unicode
 */

/* Adds a bar of exactly `columns` columns. `share` is clamped to 0..1; NaN counts as 0. */
void dt_bar_add(dt_strbuf *out, const dt_term *term, dt_style style, double share, size_t columns);

#ifdef __cplusplus
}
#endif

#endif
