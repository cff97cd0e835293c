/* pyramid: keeps, for every curve of an attempt, summaries of each 64, 1024, 16384 and 262144 steps.
 *
 * Invariant  a row of the table pyramid agrees with its points in the table metrics at every commit.
 * How        the newest bucket of each level of a curve is collected in memory (dt_open_piles). It is merged into its
 *            row when a point of another bucket comes, and before the transaction ends (points.c). Merging makes
 *            the order of points irrelevant.
 * Attempts   each attempt has its own pyramid: which points count is decided when they are read (buckets.c),
 *            because a later attempt can undo them.
 */
#include "store/store_int.h"

#include <math.h>

void dt_pile_add(dt_pile *pile, int64_t step, int64_t time_ms, double value)
{
    bool finite = isfinite(value), first = pile->points == 0;

    if (first || step < pile->first_step) {
        pile->first_step = step;
        pile->first_ms = time_ms;
    }
    if (first || step >= pile->last_step) {
        pile->last_step = step;
        pile->last_ms = time_ms;
        pile->last = value;
    }
    if (first)
        pile->low = pile->high = NAN;
    pile->points++;
    pile->not_finite += !finite;
    if (!finite)
        return;
    pile->low = pile->low < value ? pile->low : value; /* low is NaN at the first value */
    pile->high = pile->high > value ? pile->high : value;
    pile->total += value;
}

void dt_pile_merge(dt_pile *pile, const dt_pile *other)
{
    if (other->points == 0)
        return;
    if (pile->points == 0) {
        *pile = *other;
        return;
    }
    if (other->first_step < pile->first_step) {
        pile->first_step = other->first_step;
        pile->first_ms = other->first_ms;
    }
    if (other->last_step >= pile->last_step) {
        pile->last_step = other->last_step;
        pile->last_ms = other->last_ms;
        pile->last = other->last;
    }
    pile->points += other->points;
    pile->not_finite += other->not_finite;
    pile->low = fmin(pile->low, other->low);
    pile->high = fmax(pile->high, other->high);
    pile->total += other->total;
}

static dt_status pile_write(dt_store *store, const dt_open_piles *g, int level, dt_error *err)
{
    const dt_pile *p = &g->pile[level];

    return DT_SQL_RUN(
        store, err,
        "INSERT INTO pyramid (series, attempt, level, bucket, points, not_finite, low, high, total,"
        " first_step, first_ms, last_step, last_ms, last)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
        " ON CONFLICT (series, attempt, level, bucket) DO UPDATE SET points = points + ?5,"
        " not_finite = not_finite + ?6, low = min(coalesce(low, ?7), coalesce(?7, low)),"
        " high = max(coalesce(high, ?8), coalesce(?8, high)), total = total + ?9,"
        " first_ms = CASE WHEN ?10 < first_step THEN ?11 ELSE first_ms END,"
        " first_step = min(first_step, ?10),"
        " last_ms = CASE WHEN ?12 > last_step THEN ?13 ELSE last_ms END,"
        " last = CASE WHEN ?12 > last_step THEN ?14 ELSE last END,"
        " last_step = max(last_step, ?12)",
        DT_INT(g->series), DT_INT(g->attempt), DT_INT(level + 1), DT_INT(g->bucket[level]),
        DT_INT(p->points), DT_INT(p->not_finite), DT_REAL(p->low), DT_REAL(p->high),
        DT_REAL(p->total), DT_INT(p->first_step), DT_INT(p->first_ms), DT_INT(p->last_step),
        DT_INT(p->last_ms), DT_REAL(p->last));
}

dt_status dt_open_piles_write(dt_store *store, dt_open_piles *g, dt_error *err)
{
    dt_status st = DT_OK;

    for (int level = 0; level < DT_PYRAMID_LEVELS; level++) {
        if (g->pile[level].points > 0)
            DT_TRY(pile_write(store, g, level, err));
        g->pile[level].points = 0;
    }
out:
    return st;
}

dt_status dt_open_piles_add(dt_store *store, dt_open_piles *g, int64_t step, int64_t time_ms,
                            double value, dt_error *err)
{
    dt_status st = DT_OK;

    for (int level = 0; level < DT_PYRAMID_LEVELS; level++) {
        dt_pile *pile = &g->pile[level];
        int64_t bucket = dt_step_bucket(step, dt_pyramid_shift(level + 1));

        if (pile->points > 0 && g->bucket[level] != bucket)
            DT_TRY(pile_write(store, g, level, err));
        if (pile->points == 0 || g->bucket[level] != bucket)
            *pile = (dt_pile){0};
        g->bucket[level] = bucket;
        dt_pile_add(pile, step, time_ms, value);
    }
out:
    return st;
}

/* --- pyramids of existing points */

dt_status dt_pyramid_build(dt_store *store, const char *run, dt_error *err)
{
    static const char of_all[] = "SELECT series, attempt, step, time_ms, value FROM metrics"
                                 " WHERE ?1 IS NULL ORDER BY series, step, attempt";
    static const char of_run[] = "SELECT series, attempt, step, time_ms, value FROM metrics"
                                 " WHERE series IN (SELECT series FROM series JOIN runs USING (run)"
                                 " WHERE id = ?1) ORDER BY series, step, attempt";
    dt_open_piles g = {0};
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;
    bool more;

    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err, run != NULL ? of_run : of_all, DT_TEXT(run)));
    for (;;) {
        int64_t series, attempt, step, time_ms;

        DT_TRY(dt_sql_next(&rows, &more, err));
        if (!more)
            break;
        series = dt_sql_int(&rows);
        attempt = dt_sql_int(&rows);
        step = dt_sql_int(&rows);
        time_ms = dt_sql_int(&rows);
        if (series != g.series || attempt != g.attempt)
            DT_TRY(dt_open_piles_write(store, &g, err));
        g.series = series;
        g.attempt = attempt;
        DT_TRY(dt_open_piles_add(store, &g, step, time_ms, dt_sql_real(&rows), err));
    }
    DT_TRY(dt_open_piles_write(store, &g, err));
out:
    dt_sql_close(&rows);
    return st;
}
