/* curve: one metric of one run, in so many buckets, with what it reached.
 *
 * Ownership  arrays live in the arena. Points are read one by one and not kept.
 */
#ifndef DT_RUNNER_VIEW_CURVE_H
#define DT_RUNNER_VIEW_CURVE_H

#include "runner/term/term.h"
#include "store/store.h"

#define DT_CURVE_SPARK_MOST 32 /* buckets of a curve that is drawn in one line */

typedef struct dt_curve_point {
    int64_t step;
    double value;
} dt_curve_point;

typedef struct dt_curve {
    int64_t count;                        /* 0: the run has none */
    dt_curve_point lowest, highest, last; /* of what is a number */
    double *means;                        /* one a bucket, NaN where no point is */
    size_t buckets;
    int64_t first_step, last_step; /* that buckets go from and to */
} dt_curve;

/* Of steps first_step to last_step; buckets may be 0. */
dt_status dt_curve_read(dt_curve *out, dt_store *store, const char *run, const char *name,
                        int64_t first_step, int64_t last_step, size_t buckets, dt_arena *arena,
                        dt_error *err);
/* The first and the last step of its points; false: there is none. */
dt_status dt_curve_extent(bool *there, int64_t *first_step, int64_t *last_step, dt_store *store,
                          const char *run, const char *name, dt_arena *arena, dt_error *err);
/* The whole of it in at most `most` buckets of as many steps each, read from buckets that the store keeps:
 * as quick for a million points as for a thousand. The steps of lowest and highest are not known (-1);
 * out->first_step and out->last_step are set. */
dt_status dt_curve_sketch(dt_curve *out, dt_store *store, const char *run, const char *name,
                          size_t most, dt_arena *arena, dt_error *err);
/* The curve in one line of at most `columns` columns, which may be fewer than it has buckets (at most
 * DT_CURVE_SPARK_MOST); nothing without Unicode. */
void dt_curve_add_spark(dt_strbuf *out, const dt_term *term, const dt_curve *curve, size_t columns);
const dt_curve_point *dt_curve_best(const dt_curve *curve, const char *name);

#endif
