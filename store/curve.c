/* curve: reads a metric of a run as one curve over its attempts.
 *
 * If an attempt started from step s, points of older attempts after s were undone and are left out; at s itself, where
 * both can have a point, the newer one is used.
 */
#include "store/store_int.h"

#include <string.h>

/* Returns for each attempt, from 1, its last step that counts: the earliest start of a later attempt. */
static dt_status last_steps_read(dt_store *store, int64_t **out, int64_t *count, int64_t run,
                                 dt_arena *arena, dt_error *err)
{
    dt_status st =
        DT_SQL_LIST(out, count, &dt_sql_one_int, store, arena, err,
                    "SELECT start_step FROM attempts WHERE run = ?1 ORDER BY attempt", DT_INT(run));
    int64_t earliest = INT64_MAX;

    for (int64_t i = *count - 1; i >= 0; i--) {
        int64_t start = (*out)[i];

        (*out)[i] = earliest;
        earliest = start < earliest ? start : earliest;
    }
    return st;
}

#define CURVE(X) X(dt_store_curve, series, "series") X(dt_store_curve, name, "name")

static const dt_sql_row curve_row = DT_SQL_ROW(dt_store_curve, CURVE);

dt_status dt_store_curves_find(dt_store *store, dt_store_curves *out, const char *run,
                               const char *name, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(last_steps_read(store, &out->last_steps, &out->attempts, number, arena, err));
    DT_TRY(DT_SQL_LIST(
        &out->curves, &out->count, &curve_row, store, arena, err,
        DT_SQL_SELECT(CURVE,
                      "FROM series WHERE run = ?1 AND (?2 IS NULL OR name = ?2) ORDER BY name"),
        DT_INT(number), DT_TEXT(name)));
out:
    return st;
}

/* Returns true if a later attempt undid the point, or if the point's attempt is newer than
 * dt_store_curves_find saw. */
static bool is_undone(const dt_store_curves *curves, const dt_metric *point)
{
    return point->attempt > curves->attempts ||
           (point->attempt >= 1 && point->step > curves->last_steps[point->attempt - 1]);
}

dt_status dt_store_curve_scan(dt_store *store, const dt_store_curves *curves, int64_t which,
                              int64_t after_step, int64_t last_step, dt_store_take take,
                              void *context, dt_error *err)
{
    const dt_store_curve *curve = &curves->curves[which];
    dt_metric point = {.name = curve->name}, next = point;
    bool have = false, more = true, wanted = true;
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;

    /* of several points at one step the last one counts: that of the newest attempt */
    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err,
                       "SELECT attempt, step, time_ms, value FROM metrics WHERE series = ?1"
                       " AND step > ?2 AND step <= ?3 ORDER BY step, attempt",
                       DT_INT(curve->series), DT_INT(after_step), DT_INT(last_step)));
    while (wanted) {
        DT_TRY(dt_sql_next(&rows, &more, err));
        if (!more)
            break;
        next.attempt = dt_sql_int(&rows);
        next.step = dt_sql_int(&rows);
        next.time_ms = dt_sql_int(&rows);
        next.value = dt_sql_real(&rows);
        if (is_undone(curves, &next))
            continue;
        if (have && point.step != next.step)
            wanted = take(context, &point);
        point = next;
        have = true;
    }
    if (have && wanted)
        take(context, &point);
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_curve_back(dt_store *store, const dt_store_curves *curves, int64_t which,
                              int64_t back, int64_t *step, dt_error *err)
{
    bool found;

    *step = INT64_MIN;
    return DT_SQL_FIRST(step, &found, &dt_sql_one_int, store, NULL, err,
                        "SELECT step FROM metrics WHERE series = ?1 ORDER BY step DESC"
                        " LIMIT 1 OFFSET ?2",
                        DT_INT(curves->curves[which].series), DT_INT(back));
}

typedef struct counted {
    int64_t count, last_step;
} counted;
#define COUNTED(X) X(counted, count, "count(*)") X(counted, last_step, "max(step)")

static const dt_sql_row counted_row = DT_SQL_ROW(counted, COUNTED);

static bool count_point(void *context, const dt_metric *point)
{
    counted *c = context;

    c->count++;
    c->last_step = point->step;
    return true;
}

/* Counts by SQL, which is faster than reading the points. Only for a run with one attempt, where
 * every point counts. */
static dt_status count_rows(dt_store *store, const dt_store_curve *curve, int64_t after_step,
                            counted *out, dt_error *err)
{
    bool found;

    return DT_SQL_FIRST(
        out, &found, &counted_row, store, NULL, err,
        DT_SQL_SELECT(COUNTED, "FROM metrics WHERE series = ?1 AND step > ?2 AND attempt <= 1"),
        DT_INT(curve->series), DT_INT(after_step));
}

dt_status dt_store_curve_count(dt_store *store, const dt_store_curves *curves, int64_t which,
                               int64_t after_step, int64_t *count, int64_t *last_step,
                               dt_error *err)
{
    counted found = {0};
    dt_status st = curves->attempts == 1
                       ? count_rows(store, &curves->curves[which], after_step, &found, err)
                       : dt_store_curve_scan(store, curves, which, after_step, INT64_MAX,
                                             count_point, &found, err);

    *count = found.count;
    *last_step = found.last_step;
    return st;
}

dt_status dt_store_curve_newest(dt_store *store, const dt_store_curves *curves, int64_t which,
                                int64_t after_step, dt_store_take take, void *context,
                                dt_error *err)
{
    dt_metric point = {.name = curves->curves[which].name};
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;
    bool more = true, found = false;

    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err,
                       "SELECT attempt, step, time_ms, value FROM metrics WHERE series = ?1"
                       " AND step > ?2 ORDER BY step DESC, attempt DESC",
                       DT_INT(curves->curves[which].series), DT_INT(after_step)));
    while (!found) {
        DT_TRY(dt_sql_next(&rows, &more, err));
        if (!more)
            break;
        point.attempt = dt_sql_int(&rows);
        point.step = dt_sql_int(&rows);
        point.time_ms = dt_sql_int(&rows);
        point.value = dt_sql_real(&rows);
        found = !is_undone(curves, &point);
    }
    if (found)
        take(context, &point);
out:
    dt_sql_close(&rows);
    return st;
}
