/* run_list: filters, selects and sorts runs, and prints them as a table. */
#ifndef DT_RUNNER_VIEW_RUNS_RUN_LIST_H
#define DT_RUNNER_VIEW_RUNS_RUN_LIST_H

#include "runner/term/table.h"
#include "runner/view/runs/run_value.h"

/* run_filter: parses and applies filters of runs: "optimizer.lr>1e-4", "name=gpt*", "valid_loss<=2".
 *
 * A filter is a key (run_value.h), one of = != < <= > >=, and a value. Two numbers are compared as numbers. Texts
 * are compared with = and != only, and * and ? are wildcards. A run without the key does not pass.
 */

typedef enum dt_filter_kind {
    DT_FILTER_EQUAL,
    DT_FILTER_UNEQUAL,
    DT_FILTER_LESS,
    DT_FILTER_LESS_OR_EQUAL,
    DT_FILTER_MORE,
    DT_FILTER_MORE_OR_EQUAL
} dt_filter_kind;

typedef struct dt_run_filter {
    const char *key, *value; /* in the arena */
    dt_filter_kind kind;
    bool is_number;
    double number;
} dt_run_filter;

/* DT_ERR_USAGE if `text` is not a filter. Does not check that the key exists. */
dt_status dt_run_filter_parse(dt_run_filter *out, const char *text, dt_arena *arena, dt_error *err);
bool dt_run_filter_passes(const dt_run_filter *filter, const dt_run_value *value);

/* Parses "2h", "3d", "90m" or "2w" before now, or "2026-11-20" or "2026-11-20 14:30" in local time
 * (with "Z" at the end in UTC). DT_ERR_USAGE for other texts. */
dt_status dt_since_parse(int64_t *wall_ms, const char *text, int64_t now_ms, dt_error *err);

/* run_select: selects and sorts the runs of a list.
 *
 * Ownership  entries live in the arena; dt_run_entries_release releases their recipes
 */

typedef struct dt_run_selection {
    int state;               /* dt_run_state; -1: any */
    int64_t since_ms;        /* created at this time or later; 0: any time */
    const char *const *tags; /* all must match */
    size_t tags_count;
    const char *group, *name; /* NULL: any; name is a glob */
    dt_run_filter *filters;   /* all must match */
    size_t filters_count;
    const char *sort; /* a key; NULL: newest first */
    bool descending;
    int64_t limit; /* 0: all */
} dt_run_selection;

typedef struct dt_run_entries {
    dt_run_entry *items;
    size_t count;
    bool more; /* there are more beyond the limit */
} dt_run_entries;

/* Whether the selection has only a state and a limit. */
bool dt_run_selection_is_plain(const dt_run_selection *selection);
/* DT_ERR_USAGE if a filter or the order uses a key that no run has. */
dt_status dt_run_select(dt_run_entries *out, dt_store *store, const dt_run_selection *selection,
                        dt_arena *arena, dt_error *err);
void dt_run_entries_release(dt_run_entries *entries);

/* run_table: prints runs as a table, one line each. */

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
