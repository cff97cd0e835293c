/* sql_views: defines the names under which `dtrun sql` shows the history; they stay the same when the tables change.
 *
 * One table describes each view and each column, and how SQL makes it of the tables. dt_sql_views_create and
 * dt_sql_views_markdown (docs/sql.md) both read this table. A view has the name of a table where that fits: the
 * schema `temp`, which holds the views, comes before `main` when SQLite looks up a name.
 */
#ifndef DT_STORE_SQL_VIEWS_H
#define DT_STORE_SQL_VIEWS_H

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_sql_column {
    const char *name;
    const char *type;    /* "text", "integer", "real" */
    const char *content; /* meaning of a value, in Markdown; says if it can be NULL */
    const char *sql;     /* the expression that computes it from the rows of dt_sql_view.from */
} dt_sql_column;

typedef struct dt_sql_view {
    const char *name;
    const char *content;          /* meaning of a row */
    const char *from;             /* what follows SELECT ... */
    const dt_sql_column *columns; /* ends with a NULL name */
} dt_sql_view;

extern const dt_sql_view dt_sql_views[]; /* ends with a NULL name */

/* Appends docs/sql.md. */
void dt_sql_views_markdown(dt_strbuf *out);

#ifdef __cplusplus
}
#endif

#endif
