/* run_select: selects and sorts the runs of a list.
 *
 * Ownership  entries live in the arena; dt_run_entries_release releases their recipes
 */
#ifndef DT_RUNNER_VIEW_RUN_SELECT_H
#define DT_RUNNER_VIEW_RUN_SELECT_H

#include "runner/view/runs/run_filter.h"

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

#endif
