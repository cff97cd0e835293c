/* run_filter: parses and applies filters of runs: "optimizer.lr>1e-4", "name=gpt*", "valid_loss<=2".
 *
 * A filter is a key (run_value.h), one of = != < <= > >=, and a value. Two numbers are compared as numbers. Texts
 * are compared with = and != only, and * and ? are wildcards. A run without the key does not pass.
 */
#ifndef DT_RUNNER_VIEW_RUN_FILTER_H
#define DT_RUNNER_VIEW_RUN_FILTER_H

#include "runner/view/runs/run_value.h"

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

#endif
