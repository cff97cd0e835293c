/* term: detects what the terminal of a descriptor can show, and formats text for it.
 *
 * Colour     on a terminal, unless NO_COLOR is set (to anything but "") or TERM is dumb
 * Unicode    if the locale is UTF-8; else only ASCII is drawn
 * Remote     when a server runs the command for a remote user (web/command.h), DTRUN_TERMINAL describes the remote
 *            terminal: "terminal:120x40:colour", "file:80x24"
 * Ownership  a dt_term holds no resources; returned strings are static
 */
#ifndef DT_RUNNER_TERM_H
#define DT_RUNNER_TERM_H

#include <stdbool.h>
#include <stddef.h>

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

#ifdef __cplusplus
}
#endif
#endif
