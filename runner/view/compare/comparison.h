/* comparison: compares the recipes and the metrics of runs. */
#ifndef DT_RUNNER_VIEW_COMPARISON_H
#define DT_RUNNER_VIEW_COMPARISON_H

#include "base/json.h"
#include "runner/term/term.h"
#include "runner/view/compare/curve.h"
#include "runner/view/runs/run_value.h"

typedef struct dt_comparison {
    dt_store *store;
    dt_run_entry *runs; /* differences are to the first; the caller releases them */
    size_t count;
    const char **keys; /* recipe keys that differ */
    size_t keys_count;
    const char **metrics;
    size_t metrics_count;
    dt_curve *curves;    /* metric m of run r at m * count + r */
    int64_t *first_step; /* of each metric, over all runs */
    int64_t *last_step;
} dt_comparison;

/* Fills in the rest of *io, whose store, runs and count are given. Compares `metrics` (count 0: all
 * metrics of all runs), with curves of `buckets` buckets. DT_ERR_USAGE if no run has one of the
 * metrics. */
dt_status dt_comparison_make(dt_comparison *io, const char *const *metrics, size_t metrics_count,
                             size_t buckets, dt_arena *arena, dt_error *err);

/* {"runs": [{run, name, state, ..., "recipe": {key: value}, "metrics": {name: {best, last}}}]}.
 * New reference. */
json_t *dt_comparison_to_json(dt_comparison *comparison, dt_arena *arena);
void dt_comparison_add(dt_strbuf *out, const dt_term *term, dt_comparison *comparison,
                       dt_arena *arena);

#endif
