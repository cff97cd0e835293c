/* metric_summary: finds the last, lowest and highest value of a curve, and the mean speed, for tables of many runs. */
#include "store/store_int.h"

#include <math.h>

/* Leaves out points that a later attempt undid, as in curve.c. */
#define NOT_UNDONE                                                  \
    " AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.run = s.run" \
    " AND a.attempt > m.attempt AND a.start_step < m.step)"
#define OF_SERIES                                 \
    " FROM runs r JOIN series s ON s.run = r.run" \
    " JOIN metrics m ON m.series = s.series"      \
    " WHERE r.id = ?1 AND s.name = ?2" NOT_UNDONE

static const char last_sql[] =
    "SELECT m.value, m.step" OF_SERIES " ORDER BY m.step DESC, m.attempt DESC LIMIT 1";
static const char lowest_sql[] =
    "SELECT m.value, m.step" OF_SERIES " AND m.value IS NOT NULL ORDER BY m.value, m.step LIMIT 1";
static const char highest_sql[] = "SELECT m.value, m.step" OF_SERIES
                                  " AND m.value IS NOT NULL ORDER BY m.value DESC, m.step LIMIT 1";

dt_status dt_store_metric_end(dt_store *store, dt_metric_end *out, const char *run,
                              const char *name, dt_metric_which which, dt_error *err)
{
    static const char *const texts[] = {[DT_METRIC_LAST] = last_sql,
                                        [DT_METRIC_LOWEST] = lowest_sql,
                                        [DT_METRIC_HIGHEST] = highest_sql};
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;
    bool more;

    *out = (dt_metric_end){.value = NAN};
    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err, texts[which], DT_TEXT(run), DT_TEXT(name)));
    DT_TRY(dt_sql_next(&rows, &more, err));
    if (more) {
        out->there = true;
        out->value = dt_sql_real(&rows);
        out->step = dt_sql_int(&rows);
    }
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_metric_known(dt_store *store, bool *known, const char *name, dt_error *err)
{
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;

    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err, "SELECT 1 FROM series WHERE name = ?1 LIMIT 1",
                       DT_TEXT(name)));
    DT_TRY(dt_sql_next(&rows, known, err));
out:
    dt_sql_close(&rows);
    return st;
}

/* --- speed */

enum { SPEED_BUCKETS_MOST = 2000 };

/* Uses only the points of a fork itself: those up to parent_step were copied from the parent. Every point has the same
 * number of tokens, so that (number of points) / (sum over buckets of points / mean) is all tokens over the time of all
 * steps. If a bucket has several points, its mean replaces them, which is too fast by the square of their relative
 * spread (5 %: 0.25 %). */
dt_status dt_store_run_mean_speed(dt_store *store, double *out, const dt_run *run, dt_arena *arena,
                                  dt_error *err)
{
    double taken = 0, seconds_per_token = 0;
    dt_store_curves curves;
    dt_bucket *buckets;
    dt_status st = DT_OK;
    int64_t count = 0;

    *out = run->tokens_per_second;
    DT_TRY(dt_store_curves_find(store, &curves, run->id, "tokens_per_second", arena, err));
    if (curves.count > 0)
        DT_TRY(dt_store_curve_buckets(store, &buckets, &count, &curves, 0, run->parent_step + 1,
                                      INT64_MAX, SPEED_BUCKETS_MOST, arena, err));
    for (int64_t i = 0; i < count; i++) {
        double points = (double)(buckets[i].points - buckets[i].not_finite);

        if (buckets[i].mean > 0) {
            seconds_per_token += points / buckets[i].mean;
            taken += points;
        }
    }
    if (taken > 0)
        *out = taken / seconds_per_token;
out:
    return st;
}
