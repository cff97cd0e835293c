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
    *table = (dt_table){arena, columns, columns_count, 0, NULL, NULL};
}

/* Running out of memory for a line of text ends the process, as in dt_strbuf. */
static dt_table_row *row_new(dt_table *table)
{
    dt_table_row *row =
        dt_arena_alloc(table->arena, sizeof(*row) + table->columns_count * sizeof(row->cells[0]));

    DT_ASSERT(row != NULL);
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
    DT_ASSERT(row->cells[table->next].text != NULL);
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

static void add_blanks(dt_strbuf *out, size_t count)
{
    while (count-- > 0)
        dt_strbuf_add_char(out, ' ');
}

static void write_row(dt_strbuf *out, const dt_table *table, const dt_term *term,
                      const dt_table_cell *cells, const size_t *widths, size_t indent)
{
    size_t owed = indent; /* blanks are written only before text */

    for (size_t i = 0; i < table->columns_count; i++) {
        size_t blank = widths[i] - dt_term_width(cells[i].text);
        if (cells[i].text[0] != '\0') {
            add_blanks(out, owed + (table->columns[i].right ? blank : 0));
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

    DT_ASSERT(widths != NULL && titles != NULL);
    for (size_t i = 0; i < table->columns_count; i++) {
        const char *title = table->columns[i].title;
        widths[i] = column_width(table, i);
        titles[i] = (dt_table_cell){title != NULL ? title : "", DT_STYLE_DIM};
        titled = titled || title != NULL;
    }
    if (titled)
        write_row(out, table, term, titles, widths, (size_t)indent);
    for (const dt_table_row *row = table->first; row != NULL; row = row->next)
        write_row(out, table, term, row->cells, widths, (size_t)indent);
}
