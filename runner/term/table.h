/* table: writes aligned columns.
 *
 * Ownership  cells are copied into the arena of the table
 */
#ifndef DT_RUNNER_TERM_TABLE_H
#define DT_RUNNER_TERM_TABLE_H

#include "base/memory.h"
#include "runner/term/term.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    dt_table_row *first, *last;
} dt_table;

void dt_table_init(dt_table *table, const dt_table_column *columns, size_t columns_count,
                   dt_arena *arena);
/* Adds a cell, from left to right; after the last column a new row starts. */
void dt_table_add(dt_table *table, dt_style style, const char *fmt, ...) DT_PRINTF(3, 4);
/* The same for a text that people copy, such as a command. Only the terminal breaks it; so are cells that begin as a path
 * does. */
void dt_table_add_whole(dt_table *table, dt_style style, const char *fmt, ...) DT_PRINTF(3, 4);
/* Writes the table with two spaces between columns, `indent` before the first and none at line
 * ends. If it is wider than the terminal, cells of text are wrapped, then spare columns are left out, then cells are
 * wrapped further. Files and pipes get everything, one line a row. */
void dt_table_write(dt_strbuf *out, const dt_table *table, const dt_term *term, int indent);

#ifdef __cplusplus
}
#endif
#endif
