/* term: detects what a terminal can show, formats text, numbers and durations, and draws bars, tables and
 * curves.
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

#include "base/display.h"
#include "base/memory.h"
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
    DT_STYLE_TRAINED, /* text that is learned, as in `dtrun data show` */
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
/* Returns the bytes of the text that fit into `columns` and end before a blank or a line feed; at least one
 * character. */
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

/* bar: draws a progress bar of a given width.
 *
 *   ━━━━━━━━━━━━╸─────────────   or   ############-------------   without Unicode
 */

/* Adds a bar of exactly `columns` columns. `share` is clamped to 0..1; NaN counts as 0. */
void dt_bar_add(dt_strbuf *out, const dt_term *term, dt_style style, double share, size_t columns);

/* table: writes aligned columns.
 *
 * Ownership  cells are copied into the arena of the table
 */

typedef struct dt_table_column {
    const char *title; /* NULL in all columns: no title line */
    bool right;        /* numbers: aligned at the right edge */
} dt_table_column;

typedef struct dt_table_row dt_table_row;

typedef struct dt_table {
    dt_arena *arena;
    const dt_table_column *columns;
    size_t columns_count, next; /* next: the column of the next cell */
    const int *spare; /* of each column: on a narrow terminal the highest is left out first; 0:
                         never; NULL: all columns stay */
    bool clipped;     /* one line a row: cells are clipped instead of wrapped, for screens */
    const int *
        least; /* with clipped: columns of text that are narrowed to this width before a spare column is left
                         out; 0: not; NULL: none. All but the last are cut in the middle, as both ends tell names apart */
    dt_table_row *first, *last;
} dt_table;

void dt_table_init(dt_table *table, const dt_table_column *columns, size_t columns_count,
                   dt_arena *arena);
/* Adds a cell, from left to right; after the last column a new row starts. */
void dt_table_add(dt_table *table, dt_style style, const char *fmt, ...) DT_PRINTF(3, 4);
/* The same for a text that people copy, such as a command. Only the terminal breaks it; so are cells that
 * begin as a path does. */
void dt_table_add_whole(dt_table *table, dt_style style, const char *fmt, ...) DT_PRINTF(3, 4);
/* Writes the table with two spaces between columns, `indent` before the first and none at line
 * ends. If it is wider than the terminal, cells of text are wrapped, then spare columns are left out, then cells are
 * wrapped further. Files and pipes get everything, one line a row. */
void dt_table_write(dt_strbuf *out, const dt_table *table, const dt_term *term, int indent);

/* plot: draws curves in a few lines of text.
 *
 *    2.51 |⡇                        Braille dots in colours; letters if the terminal has
 *         |⠱⡀                       no Unicode, or several curves and no colour
 *    1.02 |  ⠉⠒⠤⠤⣀⣀
 *         +------------------------
 *          0                   2,000
 */

typedef struct dt_plot {
    const double *const *curves; /* each of `buckets` values from left to right; NaN: none */
    size_t curves_count, buckets;
    int64_t first_step, last_step; /* labels of the axis */
    int columns, rows;             /* of the plot with its labels */
} dt_plot;

/* Returns the style of curve `which` for a legend; *mark is its letter or line. */
dt_style dt_plot_style(const char **mark, const dt_term *term, size_t which, size_t curves_count);
/* Number of buckets that can be distinguished in `columns` columns. */
size_t dt_plot_buckets(int columns);
/* Adds the plot, or nothing if no curve has a value. Ends with a line feed. */
void dt_plot_add(dt_strbuf *out, const dt_term *term, const dt_plot *plot, dt_arena *arena);

/* Adds one line of blocks, ▁ for the lowest value to █ for the highest; nothing without Unicode. A bucket
 * without a value gets one between its neighbours, and none at the ends. */
void dt_plot_spark(dt_strbuf *out, const dt_term *term, const double *values, size_t count);

#ifdef __cplusplus
}
#endif

#endif
