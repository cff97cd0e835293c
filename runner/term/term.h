/* term: what the other end of a descriptor can show.
 *
 * Colour     on a terminal, unless NO_COLOR is set (to anything but "") or TERM is dumb
 * Unicode    where the locale's character set is UTF-8; else plain ASCII is drawn
 * Elsewhere  where a server runs the command for somebody (web/command.h), DTRUN_TERMINAL says what shows its
 *            output: "terminal:120x40:colour", "file:80x24"
 * Ownership  a dt_term holds no resources; strings returned are static
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
    bool seen;    /* a terminal, here or elsewhere: lines fit into `columns` */
    bool live;    /* one here, whose lines can be redrawn */
    bool colour;  /* escape sequences are welcome */
    bool unicode; /* bars and dots beyond ASCII */
    int columns;  /* 80 where nobody says */
    int rows;     /* 24 where nobody says */
} dt_term;

/* What text means; how that looks is decided in term.c alone. */
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
/* Whether a person sees what is written to stdout, here or elsewhere. */
bool dt_term_is_seen(void);
/* The size again: windows are resized. */
void dt_term_measure(dt_term *term);

/* Adds formatted text in a style. What must not be shown (base/display.h) is '?', tabs are blanks,
 * so that no log line or name steers the terminal. */
void dt_term_add(dt_strbuf *out, const dt_term *term, dt_style style, const char *fmt, ...)
    DT_PRINTF(4, 5);

/* Adds text in a style as lines of at most `columns` columns, each after `indent` blanks and with a line
 * feed; they are broken at blanks, or within a word that is longer than a line. columns 0: one line. */
void dt_term_add_wrapped(dt_strbuf *out, const dt_term *term, dt_style style, size_t indent,
                         size_t columns, const char *text);

/* Columns that text takes: our styles take none, a character what dt_display_columns says. */
size_t dt_term_width(const char *text);

/* Adds text that was made with dt_term_add, and perhaps without: of escape sequences only our own
 * styles pass, and those only where there is colour. */
void dt_term_add_whole(dt_strbuf *out, const dt_term *term, const char *text);

/* The same, cut to `columns`; styles are kept whole and are ended. */
void dt_term_add_clipped(dt_strbuf *out, const dt_term *term, const char *text, size_t columns);

#ifdef __cplusplus
}
#endif
#endif
