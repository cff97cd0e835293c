#include "runner/term/term.h"

#include <math.h>
#include <stdio.h>

enum { LABEL_COLUMNS = 11, DOTS_WIDE = 2, DOTS_HIGH = 4, MARKS = 26 };

static const dt_style styles[] = {DT_STYLE_ACCENT, DT_STYLE_WARN, DT_STYLE_GOOD,
                                  DT_STYLE_BAD,    DT_STYLE_BOLD, DT_STYLE_DIM};

static bool uses_dots(const dt_term *term, size_t curves_count)
{
    return term->unicode && (term->colour || curves_count == 1);
}

dt_style dt_plot_style(const char **mark, const dt_term *term, size_t which, size_t curves_count)
{
    static const char letters[MARKS][2] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                           "j", "k", "l", "m", "n", "o", "p", "q", "r",
                                           "s", "t", "u", "v", "w", "x", "y", "z"};

    *mark = uses_dots(term, curves_count) ? "\xe2\x94\x81\xe2\x94\x81" : letters[which % MARKS];
    return styles[which % (sizeof(styles) / sizeof(styles[0]))];
}

static size_t inner_columns(int columns)
{
    return columns > LABEL_COLUMNS + 10 ? (size_t)(columns - LABEL_COLUMNS) : 10;
}

size_t dt_plot_buckets(int columns)
{
    return inner_columns(columns) * DOTS_WIDE;
}

typedef struct range {
    double low, high;
} range;

static void widen(range *all, double value)
{
    if (!isfinite(value))
        return;
    if (!(all->low <= value))
        all->low = value;
    if (!(all->high >= value))
        all->high = value;
}

/* --- the grid */

typedef struct cell {
    unsigned char dots, curve;
} cell;

typedef struct grid {
    cell *cells;
    size_t columns, rows;
    range y;
} grid;

/* Bits of the eight Braille dots, by column and row. */
static const unsigned char dot_bits[DOTS_HIGH][DOTS_WIDE] = {
    {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

static void put(grid *g, size_t x, size_t y, size_t curve)
{
    cell *at = &g->cells[y / DOTS_HIGH * g->columns + x / DOTS_WIDE];

    at->dots |= dot_bits[y % DOTS_HIGH][x % DOTS_WIDE];
    at->curve = (unsigned char)curve;
}

static size_t height_of(const grid *g, double value)
{
    size_t most = g->rows * DOTS_HIGH - 1;
    double share = (g->y.high - value) / (g->y.high - g->y.low);

    return (size_t)(share * (double)most + 0.5);
}

/* Draws column x of dots, from the previous height of the curve to the current one. */
static void draw_column(grid *g, size_t x, size_t before, size_t y, size_t curve)
{
    size_t from = before < y ? before + 1 : y;
    size_t to = before > y ? before - 1 : y;

    for (size_t at = from; at <= to; at++)
        put(g, x, at, curve);
    put(g, x, y, curve);
}

/* Joins each value with the previous one, so that the curve is a continuous line. */
static void draw(grid *g, const double *values, size_t count, size_t curve)
{
    size_t wide = g->columns * DOTS_WIDE, last_x = 0, last_y = 0;
    bool has_last = false;

    for (size_t i = 0; i < count; i++) {
        size_t x = count > 1 ? i * (wide - 1) / (count - 1) : 0, y, before;

        if (!isfinite(values[i]))
            continue;
        y = height_of(g, values[i]);
        if (!has_last)
            last_x = x;
        before = has_last ? last_y : y;
        for (size_t at = last_x + (has_last && x > last_x); at <= x; at++) {
            double share = x > last_x ? (double)(at - last_x) / (double)(x - last_x) : 1;
            size_t here =
                (size_t)((double)(has_last ? last_y : y) * (1 - share) + (double)y * share + 0.5);

            draw_column(g, at, before, here, curve);
            before = here;
        }
        last_x = x;
        last_y = y;
        has_last = true;
    }
}

static void add_cell(dt_strbuf *out, const dt_term *term, const cell *at, size_t curves_count)
{
    const char *mark;
    dt_style style = dt_plot_style(&mark, term, at->curve, curves_count);
    char braille[4];

    if (at->dots == 0) {
        dt_strbuf_add_char(out, ' ');
        return;
    }
    if (uses_dots(term, curves_count)) { /* U+2800 and the dots, as UTF-8 */
        snprintf(braille, sizeof(braille), "\xe2%c%c", (char)(0xa0 | at->dots >> 6),
                 (char)(0x80 | (at->dots & 0x3f)));
        mark = braille;
    }
    dt_term_add(out, term, style, "%s", mark);
}

static void add_label(char label[DT_FORMAT_SIZE], double value)
{
    if (fabs(value) < 10000)
        snprintf(label, DT_FORMAT_SIZE, "%.4g", value);
    else
        dt_format_value(label, DT_FORMAT_SIZE, value);
}

static void add_grid(dt_strbuf *out, const dt_term *term, const grid *g, const dt_plot *plot)
{
    for (size_t row = 0; row < g->rows; row++) {
        char label[DT_FORMAT_SIZE] = "";
        size_t end = g->columns;

        if (row == 0 || row + 1 == g->rows)
            add_label(label, row == 0 ? g->y.high : g->y.low);
        dt_term_add(out, term, DT_STYLE_DIM, "%9.9s |", label);
        while (end > 0 && g->cells[row * g->columns + end - 1].dots == 0)
            end--;
        for (size_t column = 0; column < end; column++)
            add_cell(out, term, &g->cells[row * g->columns + column], plot->curves_count);
        dt_strbuf_add_char(out, '\n');
    }
}

static void add_axis(dt_strbuf *out, const dt_term *term, size_t columns, const dt_plot *plot)
{
    char first[DT_FORMAT_SIZE], last[DT_FORMAT_SIZE];
    size_t blank;

    dt_term_add(out, term, DT_STYLE_DIM, "%9s +", "");
    for (size_t i = 0; i < columns; i++)
        dt_term_add(out, term, DT_STYLE_DIM, "-");
    dt_format_whole(first, sizeof(first), plot->first_step);
    dt_format_whole(last, sizeof(last), plot->last_step);
    blank = dt_term_width(first) + dt_term_width(last);
    blank = columns > blank ? columns - blank : 1;
    dt_term_add(out, term, DT_STYLE_DIM, "\n%10s %s%*s%s\n", "", first, (int)blank, "", last);
}

void dt_plot_add(dt_strbuf *out, const dt_term *term, const dt_plot *plot, dt_arena *arena)
{
    grid g = {.columns = inner_columns(plot->columns),
              .rows = plot->rows > 2 ? (size_t)plot->rows - 2 : 1,
              .y = {NAN, NAN}};

    for (size_t c = 0; c < plot->curves_count; c++)
        for (size_t i = 0; i < plot->buckets; i++)
            widen(&g.y, plot->curves[c][i]);
    if (isnan(g.y.low))
        return;
    if (g.y.high == g.y.low)
        g.y.high = g.y.low + (g.y.low != 0 ? fabs(g.y.low) * 1e-6 : 1);
    g.cells = dt_arena_alloc_array(arena, g.columns * g.rows, sizeof(g.cells[0]));
    for (size_t i = 0; i < g.columns * g.rows; i++)
        g.cells[i] = (cell){0, 0};
    for (size_t c = plot->curves_count; c-- > 0;) /* the first curve is on top */
        draw(&g, plot->curves[c], plot->buckets, c);
    add_grid(out, term, &g, plot);
    add_axis(out, term, g.columns, plot);
}

/* Returns the next bucket at or after `at` that has a value; `count` if there is none. */
static size_t next_value(const double *values, size_t count, size_t at)
{
    while (at < count && !isfinite(values[at]))
        at++;
    return at;
}

void dt_plot_spark(dt_strbuf *out, const dt_term *term, const double *values, size_t count)
{
    size_t last = 0, next;
    range y = {NAN, NAN};

    if (!term->unicode)
        return;
    for (size_t i = 0; i < count; i++)
        widen(&y, values[i]);
    for (size_t i = next_value(values, count, 0); i < count && !isnan(y.low); i++) {
        double value = values[i], share;

        next = next_value(values, count, i);
        if (next == count)
            break;
        if (next > i) /* no point is in this bucket: the line from the last value to the next one */
            value = values[last] +
                    (values[next] - values[last]) * (double)(i - last) / (double)(next - last);
        else
            last = i;
        share = y.high > y.low ? (value - y.low) / (y.high - y.low) : 0;
        dt_strbuf_add_fmt(out, "\xe2\x96%c",
                          (char)(0x81 + (int)(share * 7 + 0.5))); /* U+2581 to U+2588 */
    }
}
