/* run_table: prints runs as a table, one line each. */
#ifndef DT_RUNNER_VIEW_RUN_TABLE_H
#define DT_RUNNER_VIEW_RUN_TABLE_H

#include "runner/term/table.h"
#include "runner/view/runs/run_select.h"

/* The keys of --columns: "a,b" replaces the usual columns, "+a,b" adds to them. DT_ERR_USAGE for a
 * key that no run has. */
typedef struct dt_run_columns {
    const char **keys;
    size_t count;
    bool usual; /* the usual columns come first */
} dt_run_columns;
dt_status dt_run_columns_parse(dt_run_columns *out, dt_store *store, const char *text,
                               dt_arena *arena, dt_error *err);
/* The columns without --columns: the usual ones and a few keys in which the recipes differ. */
void dt_run_columns_differing(dt_run_columns *out, dt_run_entries *entries, dt_arena *arena);

dt_status dt_run_table_write(dt_strbuf *out, const dt_term *term, dt_store *store,
                             dt_run_entries *entries, const dt_run_columns *columns,
                             dt_arena *arena, dt_error *err);

#endif
