/* wide: writes the points of runs as CSV, one line a step and one column a metric. */
#ifndef DT_RUNNER_VIEW_WIDE_H
#define DT_RUNNER_VIEW_WIDE_H

#include "base/strbuf.h"
#include "store/store.h"

typedef struct dt_run_points {
    const char *run;
    dt_metric *points; /* by name, then step */
    int64_t count;
} dt_run_points;

/* Adds "step,loss,...", or with several runs "run,step,loss,...". Missing values are empty. */
dt_status dt_wide_add(dt_strbuf *out, const dt_run_points *runs, size_t count, dt_arena *arena,
                      dt_error *err);

#endif
