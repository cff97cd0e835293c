/* table: columns that line up.
 *
 * Ownership  cells are copied into the arena that the table was given
 */
#ifndef DT_RUNNER_TERM_TABLE_H
#define DT_RUNNER_TERM_TABLE_H

#include "base/arena.h"
#include "runner/term/term.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_table_column {
    const char *title; /* NULL in all: no line of titles */
    bool right;        /* numbers: aligned at the right edge */
} dt_table_column;

typedef struct dt_table_row dt_table_row;

typedef struct dt_table {
    dt_arena *arena;
    const dt_table_column *columns;
    size_t columns_count, next; /* next: the column of the next cell */
    const int *spare; /* of each column: on a narrow terminal the highest is left out first; 0:
                         stays; NULL: all stay */
    dt_table_row *first, *last;
} dt_table;

void dt_table_init(dt_table *table, const dt_table_column *columns, size_t columns_count,
                   dt_arena *arena);
/* Cells from left to right; after the last column a new row begins. */
void dt_table_add(dt_table *table, dt_style style, const char *fmt, ...) DT_PRINTF(3, 4);
/* Two blanks between columns, `indent` before the first, none at line ends. Where the table is
 * wider than the terminal, columns that can be spared are left out, then the widest is cut. Files
 * and pipes get all of it. */
void dt_table_write(dt_strbuf *out, const dt_table *table, const dt_term *term, int indent);

#ifdef __cplusplus
}
#endif
#endif
