/* curve: reads the points of metrics: one metric of one run in buckets, or all of several runs as CSV.
 *
 * Ownership  arrays live in the arena. Points are read one by one and not stored.
 */
#ifndef DT_RUNNER_VIEW_COMPARE_CURVE_H
#define DT_RUNNER_VIEW_COMPARE_CURVE_H

#include "base/strbuf.h"
#include "runner/term/term.h"
#include "store/store.h"

#define DT_CURVE_SPARK_MOST 32 /* maximum buckets of a curve drawn in one line */

typedef struct dt_curve_point {
    int64_t step;
    double value;
} dt_curve_point;

typedef struct dt_curve {
    int64_t count;                  /* 0: the run has none */
    dt_curve_point lowest, highest; /* without NaN; step -1: none */
    dt_curve_point last;            /* may be NaN; step -1: none */
    double *means;                  /* of each bucket; NaN if it has no point */
    size_t buckets;
    int64_t first_step, last_step; /* range of the buckets */
} dt_curve;

/* Reads steps first_step to last_step; buckets may be 0. */
dt_status dt_curve_read(dt_curve *out, dt_store *store, const char *run, const char *name,
                        int64_t first_step, int64_t last_step, size_t buckets, dt_arena *arena,
                        dt_error *err);
/* Finds the first and the last step; *there false: the run has no points. */
dt_status dt_curve_extent(bool *there, int64_t *first_step, int64_t *last_step, dt_store *store,
                          const char *run, const char *name, dt_arena *arena, dt_error *err);
/* Reads the whole curve in at most `most` buckets of equal width, from the buckets that the store keeps: the
 * time does not depend on the number of points. Sets out->first_step and out->last_step; the steps of lowest
 * and highest are -1 (unknown). */
dt_status dt_curve_sketch(dt_curve *out, dt_store *store, const char *run, const char *name,
                          size_t most, dt_arena *arena, dt_error *err);
/* Draws the curve in one line of at most `columns` columns; it may have more buckets, up to
 * DT_CURVE_SPARK_MOST. Draws nothing without Unicode. */
void dt_curve_add_spark(dt_strbuf *out, const dt_term *term, const dt_curve *curve, size_t columns);
const dt_curve_point *dt_curve_best(const dt_curve *curve, const char *name);

/* wide: writes the points of runs as CSV, one line a step and one column a metric. */

typedef struct dt_run_points {
    const char *run;
    dt_metric *points; /* by name, then step */
    int64_t count;
} dt_run_points;

/* Adds "step,loss,...", or with several runs "run,step,loss,...". Missing values are empty. */
dt_status dt_wide_add(dt_strbuf *out, const dt_run_points *runs, size_t count, dt_arena *arena,
                      dt_error *err);

#endif
