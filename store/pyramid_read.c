/* pyramid_read: reads an attempt's curve as buckets of a requested width.
 *
 * Reads the rows of the highest level whose buckets are not wider; where the range ends inside a bucket, rows of lower
 * levels, and finally points.
 */
#include "store/store_int.h"

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
