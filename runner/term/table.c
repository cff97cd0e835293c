#include "runner/term/term.h"

#include <stdarg.h>
#include <string.h>

enum {
    CUT_LEAST = 8, /* least width of a column of text */
    WRAP_FIRST =
        24, /* columns of text are wrapped to this width before spare columns are left out */
    TEXT_LEAST = 20 /* room of the last column, even if the others leave less */
};

typedef struct dt_table_cell {
    const char *text;
    dt_style style;
    bool whole;
} dt_table_cell;

struct dt_table_row {
    dt_table_row *next;
    dt_table_cell cells[];
};

void dt_table_init(dt_table *table, const dt_table_column *columns, size_t columns_count,
                   dt_arena *arena)
{
    *table = (dt_table){.arena = arena, .columns = columns, .columns_count = columns_count};
}

static dt_table_row *row_new(dt_table *table)
{
    dt_table_row *row =
        dt_arena_alloc(table->arena, sizeof(*row) + table->columns_count * sizeof(row->cells[0]));

    for (size_t i = 0; i < table->columns_count; i++)
        row->cells[i] = (dt_table_cell){"", DT_STYLE_PLAIN, false};
    if (table->last != NULL)
        table->last->next = row;
    else
        table->first = row;
    table->last = row;
    return row;
}

static bool is_path(const char *text)
{
    return text[0] == '/' || strncmp(text, "~/", 2) == 0;
}

static void add(dt_table *table, dt_style style, bool whole, const char *text)
{
    dt_table_row *row = table->next == 0 ? row_new(table) : table->last;

    row->cells[table->next] = (dt_table_cell){text, style, whole || is_path(text)};
    table->next = (table->next + 1) % table->columns_count;
}

void dt_table_add(dt_table *table, dt_style style, const char *fmt, ...)
{
    const char *text;
    va_list args;

    va_start(args, fmt);
    text = dt_arena_vprintf(table->arena, fmt, args);
    va_end(args);
    add(table, style, false, text);
}

void dt_table_add_whole(dt_table *table, dt_style style, const char *fmt, ...)
{
    const char *text;
    va_list args;

    va_start(args, fmt);
    text = dt_arena_vprintf(table->arena, fmt, args);
    va_end(args);
    add(table, style, true, text);
}

/* --- widths --- */

/* Returns the width of the widest cell. In the last column, whole cells need none: nothing is after them. */
static size_t column_width(const dt_table *table, size_t column, bool fitted)
{
    const char *title = table->columns[column].title;
    size_t widest = title != NULL ? dt_term_width(title) : 0;
    bool last = column + 1 == table->columns_count;

    for (const dt_table_row *row = table->first; row != NULL; row = row->next) {
        size_t width = dt_term_width(row->cells[column].text);

        if (width > widest && !(fitted && last && row->cells[column].whole))
            widest = width;
    }
    return widest;
}

static size_t total_width(const dt_table *table, const size_t *widths, size_t indent)
{
    size_t total = indent;

    for (size_t i = 0, shown = 0; i < table->columns_count; i++)
        if (widths[i] > 0)
            total += widths[i] + (shown++ > 0 ? 2 : 0);
    return total;
}

/* Narrows columns of text, the widest first, until the table fits or all are at most `least` wide; with `least` 0, the
 * columns of table->least to its widths. */
static void narrow(size_t *widths, const dt_table *table, size_t indent, size_t room, size_t least)
{
    for (;;) {
        size_t total = total_width(table, widths, indent), widest = table->columns_count, over;
        size_t to = least;

        for (size_t i = 0; i < table->columns_count; i++) {
            size_t low = least > 0 ? least : (size_t)table->least[i];

            if (table->columns[i].right || low == 0 || widths[i] <= low ||
                (widest < table->columns_count && widths[i] <= widths[widest]))
                continue;
            widest = i;
            to = low;
        }
        if (total <= room || widest == table->columns_count)
            return;
        over = total - room;
        widths[widest] = widths[widest] > to + over ? widths[widest] - over : to;
    }
}

/* Narrows the columns of table->least from their full widths, as a column may have been left out since. */
static void narrow_first(size_t *widths, const dt_table *table, const size_t *full, size_t indent,
                         size_t room)
{
    if (table->least == NULL)
        return;
    for (size_t i = 0; i < table->columns_count; i++)
        if (widths[i] > 0 && table->least[i] > 0)
            widths[i] = full[i];
    narrow(widths, table, indent, room, 0);
}

/* Reduces widths until the table fits in `room` columns. A width of 0 leaves a column out. */
static void fit(size_t *widths, const dt_table *table, size_t indent, size_t room)
{
    size_t *full = dt_arena_alloc_array(table->arena, table->columns_count, sizeof(full[0]));

    memcpy(full, widths, table->columns_count * sizeof(full[0]));
    if (!table->clipped)
        narrow(widths, table, indent, room, WRAP_FIRST);
    narrow_first(widths, table, full, indent, room);
    while (table->spare != NULL && total_width(table, widths, indent) > room) {
        size_t leave = 0;

        for (size_t i = 1; i < table->columns_count; i++)
            if (widths[i] > 0 && table->spare[i] > 0 &&
                (leave == 0 || table->spare[i] > table->spare[leave]))
                leave = i;
        if (leave == 0)
            break;
        widths[leave] = 0;
        narrow_first(widths, table, full, indent, room);
    }
    narrow(widths, table, indent, room, CUT_LEAST);
}

/* --- cells --- */

static void add_blanks(dt_strbuf *out, size_t count)
{
    while (count-- > 0)
        dt_strbuf_add_char(out, ' ');
}

/* Returns the end of a text that has at most `width` columns and begins with a whole character. */
static const char *end_of(const char *text, size_t width)
{
    while (dt_term_width(text) > width)
        for (text++; ((unsigned char)*text & 0xc0) == 0x80; text++)
            ;
    return text;
}

/* Adds a clipped cell, with an ellipsis at the end or, with `middle`, before its last third. */
static void add_cut(dt_strbuf *out, const dt_term *term, const dt_table_cell *cell, size_t width,
                    bool middle)
{
    const char *mark = term->unicode ? "\xe2\x80\xa6" : "~";
    size_t after = middle ? (width - 1) / 3 : 0, used;
    dt_strbuf text, shown;

    dt_strbuf_init(&text);
    dt_strbuf_init(&shown);
    dt_term_add_whole(&shown, &(dt_term){.fd = -1}, cell->text); /* without styles */
    dt_term_add_clipped(&text, &(dt_term){.fd = -1}, shown.data, width - 1 - after);
    dt_strbuf_add_fmt(&text, "%s%s", mark, end_of(shown.data, after));
    dt_term_add(out, term, cell->style, "%s", text.data);
    used = dt_term_width(text.data);
    add_blanks(out, width > used ? width - used : 0); /* a wide character may not have fit */
    dt_strbuf_release(&text);
    dt_strbuf_release(&shown);
}

/* Returns the bytes of the text that go into one line: up to a blank, else after a hyphen or a slash, else
 * what fits. */
static size_t piece_of(const char *text, size_t width)
{
    size_t length = dt_term_fitting(text, width), mark = length;

    if (text[length] == '\0' || text[length] == ' ' || text[length] == '\n')
        return length;
    while (mark > 1 && strchr("-/_.,;:", text[mark - 1]) == NULL)
        mark--;
    return mark > 1 ? mark : length;
}

/* A row that is being written. */
typedef struct writer {
    dt_strbuf *out;
    const dt_table *table;
    const dt_term *term;
    const size_t *widths;
    size_t indent;
    bool wraps;
} writer;

/* Writes the first lines of all cells, and leaves the rest of each in `rest`. Returns whether there is more to write. A
 * cell that is wider than its column ends the line, so that the cells after it stay in their columns. */
static bool write_line(const writer *w, const dt_table_cell *cells, const char **rest)
{
    size_t owed = w->indent; /* blanks are written only before text */
    bool more = false, ended = false;

    for (size_t i = 0; i < w->table->columns_count; i++) {
        bool right = w->table->columns[i].right, cut = w->table->clipped && w->term->seen;
        size_t width = dt_term_width(rest[i]), room = w->widths[i], length = strlen(rest[i]);
        dt_table_cell cell = cells[i];

        if (room == 0)
            continue;
        if (ended || rest[i][0] == '\0') {
            more = more || rest[i][0] != '\0';
            owed += room + 2;
            continue;
        }
        add_blanks(w->out, owed + (right && width < room ? room - width : 0));
        if (width > room && cut) {
            cell.text = rest[i];
            add_cut(w->out, w->term, &cell, room,
                    w->table->least != NULL && w->table->least[i] > 0 &&
                        i + 1 < w->table->columns_count);
            width = room;
        } else {
            if (width > room && w->wraps && !cell.whole && !right)
                length = piece_of(rest[i], room);
            dt_term_add(w->out, w->term, cell.style, "%.*s", (int)length, rest[i]);
            width = length < strlen(rest[i]) ? dt_term_width_of(rest[i], length) : width;
        }
        owed = right || width >= room ? 2 : room - width + 2;
        ended = w->wraps && width > room;
        rest[i] += cut ? strlen(rest[i]) : length;
        rest[i] += strspn(rest[i], " \n");
        more = more || rest[i][0] != '\0';
    }
    dt_strbuf_add_char(w->out, '\n');
    return more;
}

static void write_row(const writer *w, const dt_table_cell *cells)
{
    const char **rest =
        dt_arena_alloc_array(w->table->arena, w->table->columns_count, sizeof(rest[0]));

    for (size_t i = 0; i < w->table->columns_count; i++)
        rest[i] = cells[i].text;
    while (write_line(w, cells, rest))
        ;
}

void dt_table_write(dt_strbuf *out, const dt_table *table, const dt_term *term, int indent)
{
    size_t *widths = dt_arena_alloc_array(table->arena, table->columns_count, sizeof(widths[0]));
    dt_table_cell *titles =
        dt_arena_alloc_array(table->arena, table->columns_count, sizeof(titles[0]));
    size_t room = (size_t)(term->columns > 0 ? term->columns : 80), last = table->columns_count - 1;
    const writer w = {out, table, term, widths, (size_t)indent, term->seen && !table->clipped};
    bool titled = false;

    for (size_t i = 0; i < table->columns_count; i++) {
        const char *title = table->columns[i].title;
        widths[i] = column_width(table, i, w.wraps);
        titles[i] = (dt_table_cell){title != NULL ? title : "", DT_STYLE_DIM, true};
        titled = titled || title != NULL;
    }
    if (term->seen && !titled &&
        !table->clipped) { /* labels keep their width, their values are wrapped */
        size_t taken = total_width(table, widths, (size_t)indent) - widths[last];

        if (taken + widths[last] > room)
            widths[last] = room > taken + TEXT_LEAST ? room - taken : TEXT_LEAST;
    } else if (term->seen) {
        fit(widths, table, (size_t)indent, room);
    }
    if (titled)
        write_row(&w, titles);
    for (const dt_table_row *row = table->first; row != NULL; row = row->next)
        write_row(&w, row->cells);
}
