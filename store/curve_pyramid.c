/* pyramid: keeps and reads the summaries of curves.
 *
 * Invariant  a row of the table pyramid agrees with its points in the table metrics at every commit.
 * How        the newest bucket of each level of a curve is collected in memory (dt_open_piles). It is merged into its
 *            row when a point of another bucket comes, and before the transaction ends (metric.c). Merging makes
 *            the order of points irrelevant.
 * Attempts   each attempt has its own pyramid: which points count is decided when they are read (curve_buckets.c),
 *            because a later attempt can undo them.
 */
#include <math.h>

#include "store/store_int.h"

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

/* pyramid_read: reads an attempt's curve as buckets of a requested width.
 *
 * Reads the rows of the highest level whose buckets are not wider; where the range ends inside a bucket, rows of lower
 * levels, and finally points.
 */

typedef struct reader {
    dt_store *store;
    int64_t series, attempt;
    dt_pile_take take;
    void *context;
} reader;

static dt_status points_read(const reader *r, dt_step_range of, dt_error *err)
{
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;
    bool more;

    DT_TRY(DT_SQL_OPEN(&rows, r->store, NULL, err,
                       "SELECT step, time_ms, value FROM metrics WHERE series = ?1"
                       " AND step >= ?3 AND step <= ?4 AND attempt = ?2 ORDER BY step",
                       DT_INT(r->series), DT_INT(r->attempt), DT_INT(of.from), DT_INT(of.to)));
    for (;;) {
        int64_t step, time_ms;
        dt_pile pile;

        DT_TRY(dt_sql_next(&rows, &more, err));
        if (!more)
            break;
        step = dt_sql_int(&rows);
        time_ms = dt_sql_int(&rows);
        pile = (dt_pile){0};
        dt_pile_add(&pile, step, time_ms, dt_sql_real(&rows));
        r->take(r->context, &pile);
    }
out:
    dt_sql_close(&rows);
    return st;
}

#define PILE(X)                          \
    X(dt_pile, points, "points")         \
    X(dt_pile, not_finite, "not_finite") \
    X(dt_pile, low, "low")               \
    X(dt_pile, high, "high")             \
    X(dt_pile, total, "total")           \
    X(dt_pile, first_step, "first_step") \
    X(dt_pile, first_ms, "first_ms")     \
    X(dt_pile, last_step, "last_step")   \
    X(dt_pile, last_ms, "last_ms")       \
    X(dt_pile, last, "last")

static const dt_sql_row pile_row = DT_SQL_ROW(dt_pile, PILE);

static dt_status rows_read(const reader *r, int level, dt_step_range buckets, dt_error *err)
{
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;
    bool more;

    DT_TRY(DT_SQL_OPEN(
        &rows, r->store, NULL, err,
        DT_SQL_SELECT(PILE, "FROM pyramid WHERE series = ?1 AND attempt = ?2"
                            " AND level = ?3 AND bucket >= ?4 AND bucket <= ?5 ORDER BY bucket"),
        DT_INT(r->series), DT_INT(r->attempt), DT_INT(level), DT_INT(buckets.from),
        DT_INT(buckets.to)));
    for (;;) {
        dt_pile pile;

        DT_TRY(dt_sql_next(&rows, &more, err));
        if (!more)
            break;
        DT_TRY(dt_sql_read(&pile, &rows, &pile_row, err));
        r->take(r->context, &pile);
    }
out:
    dt_sql_close(&rows);
    return st;
}

/* Reads all points of one attempt in a range: whole buckets of the level, and lower levels at both ends. */
static dt_status range_read(const reader *r, int level, dt_step_range of, dt_error *err)
{
    int shift = dt_pyramid_shift(level);
    dt_status st = DT_OK;
    dt_step_range inside;

    if (of.from > of.to)
        return DT_OK;
    if (level == 0)
        return points_read(r, of, err);
    inside.from = dt_step_bucket(of.from, shift);
    inside.from += inside.from * ((int64_t)1 << shift) < of.from;
    inside.to = dt_step_bucket(of.to, shift);
    inside.to -= inside.to * ((int64_t)1 << shift) + (((int64_t)1 << shift) - 1) > of.to;
    if (inside.from > inside.to)
        return range_read(r, level - 1, of, err);
    DT_TRY(range_read(r, level - 1,
                      (dt_step_range){of.from, inside.from * ((int64_t)1 << shift) - 1}, err));
    DT_TRY(rows_read(r, level, inside, err));
    DT_TRY(range_read(r, level - 1, (dt_step_range){(inside.to + 1) * ((int64_t)1 << shift), of.to},
                      err));
out:
    return st;
}

static int level_of(int shift)
{
    int level = 0;

    while (level < DT_PYRAMID_LEVELS && dt_pyramid_shift(level + 1) <= shift)
        level++;
    return level;
}

dt_status dt_pyramid_read(dt_store *store, int64_t series, int64_t attempt, int shift,
                          dt_step_range of, dt_pile_take take, void *context, dt_error *err)
{
    const reader r = {store, series, attempt, take, context};

    return range_read(&r, level_of(shift), of, err);
}
