#include "runner/term/table.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

typedef struct dt_table_cell {
    const char *text;
    dt_style style;
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
        row->cells[i] = (dt_table_cell){"", DT_STYLE_PLAIN};
    if (table->last != NULL)
        table->last->next = row;
    else
        table->first = row;
    table->last = row;
    return row;
}

void dt_table_add(dt_table *table, dt_style style, const char *fmt, ...)
{
    dt_table_row *row = table->next == 0 ? row_new(table) : table->last;
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    row->cells[table->next].text = dt_arena_strdup(table->arena, text);
    row->cells[table->next].style = style;
    table->next = (table->next + 1) % table->columns_count;
}

static size_t column_width(const dt_table *table, size_t column)
{
    const char *title = table->columns[column].title;
    size_t widest = title != NULL ? dt_term_width(title) : 0;

    for (const dt_table_row *row = table->first; row != NULL; row = row->next) {
        size_t width = dt_term_width(row->cells[column].text);
        widest = width > widest ? width : widest;
    }
    return widest;
}

#define CUT_LEAST 8 /* least width of a clipped column */

static size_t total_width(const dt_table *table, const size_t *widths, size_t indent)
{
    size_t total = indent;

    for (size_t i = 0, shown = 0; i < table->columns_count; i++)
        if (widths[i] > 0)
            total += widths[i] + (shown++ > 0 ? 2 : 0);
    return total;
}

/* Reduces widths until the table fits in `room` columns. A width of 0 leaves a column out. */
static void fit(size_t *widths, const dt_table *table, size_t indent, size_t room)
{
    while (total_width(table, widths, indent) > room) {
        size_t leave = 0, widest = 0, over;

        for (size_t i = 1; table->spare != NULL && i < table->columns_count; i++)
            if (widths[i] > 0 && table->spare[i] > 0 &&
                (leave == 0 || table->spare[i] > table->spare[leave]))
                leave = i;
        if (leave > 0) {
            widths[leave] = 0;
            continue;
        }
        for (size_t i = 0; i < table->columns_count; i++)
            if (!table->columns[i].right && widths[i] > widths[widest])
                widest = i;
        over = total_width(table, widths, indent) - room;
        if (widths[widest] > CUT_LEAST + over)
            widths[widest] -= over;
        else if (widths[widest] > CUT_LEAST)
            widths[widest] = CUT_LEAST;
        return;
    }
}

static void add_blanks(dt_strbuf *out, size_t count)
{
    while (count-- > 0)
        dt_strbuf_add_char(out, ' ');
}

/* Adds a clipped cell, with an ellipsis. */
static void add_cut(dt_strbuf *out, const dt_term *term, const dt_table_cell *cell, size_t width)
{
    const char *mark = term->unicode ? "\xe2\x80\xa6" : "~";
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_term_add_clipped(&text, &(dt_term){.fd = -1}, cell->text, width - 1);
    dt_term_add(out, term, cell->style, "%s%s", text.data, mark);
    add_blanks(out, width - 1 - dt_term_width(text.data)); /* a wide character may not have fit */
    dt_strbuf_release(&text);
}

static void write_row(dt_strbuf *out, const dt_table *table, const dt_term *term,
                      const dt_table_cell *cells, const size_t *widths, size_t indent)
{
    size_t owed = indent; /* blanks are written only before text */

    for (size_t i = 0; i < table->columns_count; i++) {
        size_t width = dt_term_width(cells[i].text), blank = widths[i] - width;
        if (widths[i] == 0)
            continue;
        if (width > widths[i])
            blank = 0;
        if (cells[i].text[0] != '\0') {
            add_blanks(out, owed + (table->columns[i].right ? blank : 0));
            if (width > widths[i])
                add_cut(out, term, &cells[i], widths[i]);
            else
                dt_term_add(out, term, cells[i].style, "%s", cells[i].text);
            owed = table->columns[i].right ? 2 : blank + 2;
        } else {
            owed += widths[i] + 2;
        }
    }
    dt_strbuf_add_char(out, '\n');
}

void dt_table_write(dt_strbuf *out, const dt_table *table, const dt_term *term, int indent)
{
    size_t *widths = dt_arena_alloc_array(table->arena, table->columns_count, sizeof(widths[0]));
    dt_table_cell *titles =
        dt_arena_alloc_array(table->arena, table->columns_count, sizeof(titles[0]));
    bool titled = false;

    for (size_t i = 0; i < table->columns_count; i++) {
        const char *title = table->columns[i].title;
        widths[i] = column_width(table, i);
        titles[i] = (dt_table_cell){title != NULL ? title : "", DT_STYLE_DIM};
        titled = titled || title != NULL;
    }
    if (term->seen)
        fit(widths, table, (size_t)indent, (size_t)(term->columns > 0 ? term->columns : 80));
    if (titled)
        write_row(out, table, term, titles, widths, (size_t)indent);
    for (const dt_table_row *row = table->first; row != NULL; row = row->next)
        write_row(out, table, term, row->cells, widths, (size_t)indent);
}
