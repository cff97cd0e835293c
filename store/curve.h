/* curve: adds points of metrics, and reads the curves that they form: point by point, in buckets for a chart, as a band of
 * several runs, and as the points that a client has not seen yet.
 *
 * Ownership  arrays and strings that readers fill live in the arena
 */
#ifndef DT_STORE_CURVE_H
#define DT_STORE_CURVE_H

#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- metric.c */
/* Adds a point. An existing point is kept unchanged. */
dt_status dt_store_metric_add(dt_store *store, const char *run, int64_t attempt, int64_t step,
                              const char *name, double value, int64_t time_ms, dt_error *err);
typedef struct dt_metric {
    int64_t attempt, step, time_ms;
    const char *name;
    double value;
} dt_metric;
/* Lists the run's points as one curve per metric, ordered by name and step: a point (attempt a, step s) is left out
 * if a later attempt started before s or has a point at s. name: as for dt_store_curves_find. Only points after (exclusive)
 * after_step; with `newest` only the newest of each metric. For charts use buckets, below. */
dt_status dt_store_metric_list(dt_store *store, dt_metric **out, int64_t *count, const char *run,
                               const char *name, int64_t after_step, bool newest, dt_arena *arena,
                               dt_error *err);
/* Lists all metrics except those by time. */
dt_status dt_store_metric_names(dt_store *store, const char ***out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err);

/* --- curve.c */
/* The same curves, read point by point instead of held in memory. dt_store_curves_find fixes which curves and
 * attempts count; points added later show up only if they lie before the end that it recorded. */
typedef struct dt_store_curve {
    int64_t series;
    const char *name;
    int64_t
        by_time; /* 1: its steps are seconds, so that a later attempt undoes none of its points */
} dt_store_curve;
typedef struct dt_store_curves {
    dt_store_curve *curves; /* by name */
    int64_t count, attempts;
    int64_t *last_steps; /* of each attempt, from 1: its last step that counts */
} dt_store_curves;
typedef bool (*dt_store_take)(void *context, const dt_metric *point); /* returns false to stop */

/* name: a metric; or a prefix that ends with "/": all metrics that begin with it; or NULL: all but those by time, of
 * nodes (base/metric_kinds.h). */
dt_status dt_store_curves_find(dt_store *store, dt_store_curves *out, const char *run,
                               const char *name, dt_arena *arena, dt_error *err);
/* Counts the points of a curve after (exclusive) after_step, and returns the step of the last. */
dt_status dt_store_curve_count(dt_store *store, const dt_store_curves *curves, int64_t which,
                               int64_t after_step, int64_t *count, int64_t *last_step,
                               dt_error *err);
/* Returns the step after (exclusive) which the curve has its `back` newest points; INT64_MIN if it has no more than
 * these. A step of several attempts counts once for each attempt. */
dt_status dt_store_curve_back(dt_store *store, const dt_store_curves *curves, int64_t which,
                              int64_t back, int64_t *step, dt_error *err);
/* Passes the last point of a curve after (exclusive) after_step, if any, to `take`, which must not use the store. */
dt_status dt_store_curve_newest(dt_store *store, const dt_store_curves *curves, int64_t which,
                                int64_t after_step, dt_store_take take, void *context,
                                dt_error *err);
/* Passes the points of a curve after (exclusive) after_step up to last_step, in order, to `take`, which must not use
 * the store. */
dt_status dt_store_curve_scan(dt_store *store, const dt_store_curves *curves, int64_t which,
                              int64_t after_step, int64_t last_step, dt_store_take take,
                              void *context, dt_error *err);

/* --- curve_band.c: a metric of several runs for a chart */
typedef struct dt_band {
    int64_t first_step, last_step;    /* of the points of all runs */
    int64_t runs, points, not_finite; /* runs: number of runs with a finite point here */
    double min, max;                  /* of all finite points; NaN: none */
    double mean;                      /* unweighted mean of the means of these runs */
    double seconds;                   /* mean, over these runs, of the time since the run started */
} dt_band;
/* Divides the points of several runs (by id) from step `from` to `to`, both inclusive, into at most `most` parts in
 * order, none empty, with exact extremes. The width of a part in steps is a power of two that the pyramid has, so
 * that there may be far fewer parts. Runs without this metric are ignored. */
dt_status dt_store_band(dt_store *store, dt_band **out, int64_t *count, const char *const *runs,
                        int64_t runs_count, const char *name, int64_t from, int64_t to,
                        int64_t most, dt_arena *arena, dt_error *err);

/* --- curve.c: what a run has gained since a client last read it */
typedef struct dt_since_mark {
    int64_t series, step; /* last point seen of a curve */
} dt_since_mark;
typedef struct dt_since {
    int64_t attempt;      /* the attempt of the marks; all points of earlier attempts were seen */
    int64_t event;        /* last event seen */
    dt_since_mark *marks; /* by series; a curve without a mark: no point was seen */
    int64_t count;
} dt_since;
/* Sets `out` to the present: everything was seen. */
dt_status dt_store_since_now(dt_store *store, dt_since *out, const char *run, dt_arena *arena,
                             dt_error *err);
/* Passes up to `most` unseen points to `take`, curve by curve, as stored: also those that a later attempt undoes
 * (curve.c). Advances `since` past them; its marks are then in the arena. After the last point of an attempt
 * continues with the next attempt. *more: call again at once. `take` must not use the store. */
dt_status dt_store_since_points(dt_store *store, dt_since *since, bool *more, const char *run,
                                int64_t most, dt_store_take take, void *context, dt_arena *arena,
                                dt_error *err);

/* --- curve_buckets.c: a curve for a chart, read from its pyramid (curve_pyramid.c) */
typedef struct dt_bucket {
    int64_t first_step, last_step, first_ms, last_ms; /* of its points */
    int64_t points, not_finite;                       /* not_finite: NaN or infinite */
    double min, max, mean;                            /* of the finite points; NaN: none */
    double last;                                      /* the value at last_step */
} dt_bucket;
/* Divides the points of a curve from step `from` to `to`, both inclusive, into at most `most` buckets in order, none
 * empty, with exact extremes; up to `most` points each get their own bucket. The cost grows with `most`, not with
 * the number of points. */
dt_status dt_store_curve_buckets(dt_store *store, dt_bucket **out, int64_t *count,
                                 const dt_store_curves *curves, int64_t which, int64_t from,
                                 int64_t to, int64_t most, dt_arena *arena, dt_error *err);

/* --- curve_buckets.c: the last, lowest and highest value of a curve */
typedef enum dt_metric_which {
    DT_METRIC_LAST,
    DT_METRIC_LOWEST,
    DT_METRIC_HIGHEST
} dt_metric_which;
typedef struct dt_metric_end {
    bool there; /* the run has such a point */
    int64_t step;
    double value;
} dt_metric_end;
/* DT_METRIC_LAST is found without reading all points. */
dt_status dt_store_metric_end(dt_store *store, dt_metric_end *out, const char *run,
                              const char *name, dt_metric_which which, dt_error *err);
/* Sets *known if any run has the metric. */
dt_status dt_store_metric_known(dt_store *store, bool *known, const char *name, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
