/* curve: reads a metric of a run as one curve over its attempts, and what is new in a run.
 *
 * If an attempt started from step s, points of older attempts after s were undone and are left out; at s itself, where
 * both can have a point, the newer one is used.
 */
#include <string.h>

#include "store/store_int.h"

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

#define CURVE(X)                        \
    X(dt_store_curve, series, "series") \
    X(dt_store_curve, name, "name")     \
    X(dt_store_curve, by_time, DT_SQL_BY_TIME("name"))

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
        DT_SQL_SELECT(
            CURVE,
            "FROM series WHERE run = ?1 AND CASE WHEN ?2 IS NULL THEN NOT"
            " " DT_SQL_BY_TIME(
                "name") " WHEN substr(?2, -1) = '/' THEN"
                        " substr(name, 1, length(?2)) = ?2 ELSE name = ?2 END ORDER BY name"),
        DT_INT(number), DT_TEXT(name)));
out:
    return st;
}

/* Returns true if a later attempt undid the point, or if the point's attempt is newer than
 * dt_store_curves_find saw. */
static bool is_undone(const dt_store_curves *curves, int64_t which, const dt_metric *point)
{
    return point->attempt > curves->attempts ||
           (point->attempt >= 1 && !curves->curves[which].by_time &&
            point->step > curves->last_steps[point->attempt - 1]);
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
        if (is_undone(curves, which, &next))
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
        found = !is_undone(curves, which, &point);
    }
    if (found)
        take(context, &point);
out:
    dt_sql_close(&rows);
    return st;
}

/* since: reads what is new in a run since a reader's mark; the writer does not know of marks.
 *
 * Within an attempt the points of a curve arrive in order of steps, so a mark is the attempt and the last step of
 * each of its curves. A mark moves to the next attempt once all points were read and a later attempt exists.
 */

typedef struct curve_ends {
    int64_t series, first_step, last_step;
    const char *name;
} curve_ends;

#define ENDS(X)                                    \
    X(curve_ends, series, "s.series")              \
    X(curve_ends, name, "s.name")                  \
    X(curve_ends, first_step, "min(p.first_step)") \
    X(curve_ends, last_step, "max(p.last_step)")

static const dt_sql_row ends_row = DT_SQL_ROW(curve_ends, ENDS);

/* Reads the ends of an attempt's curves from the pyramid, because a curve can have a million points of other
 * attempts. */
static dt_status curves_read(dt_store *store, curve_ends **out, int64_t *count, int64_t run,
                             int64_t attempt, dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST(
        out, count, &ends_row, store, arena, err,
        DT_SQL_SELECT(
            ENDS,
            "FROM series s JOIN pyramid p ON p.series = s.series AND p.attempt = ?2 AND p.level = 4"
            " WHERE s.run = ?1 GROUP BY s.series ORDER BY s.series"),
        DT_INT(run), DT_INT(attempt));
}

static dt_status number_read(dt_store *store, int64_t *out, const char *sql, int64_t of,
                             dt_error *err)
{
    bool found;

    *out = 0;
    return DT_SQL_FIRST(out, &found, &dt_sql_one_int, store, NULL, err, sql, DT_INT(of));
}

static dt_status newest_attempt(dt_store *store, int64_t *out, int64_t run, dt_error *err)
{
    return number_read(store, out, "SELECT max(attempt) FROM attempts WHERE run = ?1", run, err);
}

dt_status dt_store_since_now(dt_store *store, dt_since *out, const char *run, dt_arena *arena,
                             dt_error *err)
{
    dt_sql_group group = {0};
    curve_ends *curves;
    dt_status st;
    int64_t number;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_sql_group_begin_reading(&group, store, err));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(newest_attempt(store, &out->attempt, number, err));
    DT_TRY(number_read(store, &out->event, "SELECT max(event) FROM events WHERE run = ?1", number,
                       err));
    DT_TRY(curves_read(store, &curves, &out->count, number, out->attempt, arena, err));
    out->marks = dt_arena_alloc_array(arena, (size_t)out->count + 1, sizeof(*out->marks));
    for (int64_t i = 0; i < out->count; i++)
        out->marks[i] = (dt_since_mark){curves[i].series, curves[i].last_step};
out:
    return dt_sql_group_end(&group, st, err);
}

static int64_t step_of(const dt_since *since, int64_t series)
{
    for (int64_t low = 0, high = since->count; low < high;) {
        int64_t middle = low + (high - low) / 2;

        if (since->marks[middle].series == series)
            return since->marks[middle].step;
        if (since->marks[middle].series < series)
            low = middle + 1;
        else
            high = middle;
    }
    return INT64_MIN;
}

/* Passes up to `most` points of a curve after *step to `take`, and advances *step. */
static dt_status points_give(dt_store *store, int64_t *step, int64_t *given,
                             const curve_ends *curve, int64_t attempt, int64_t most,
                             dt_store_take take, void *context, dt_error *err)
{
    int64_t after = *step >= curve->first_step ? *step : curve->first_step - 1;
    dt_metric point = {.attempt = attempt, .name = curve->name};
    dt_sql_rows rows = {0};
    dt_status st;
    bool more;

    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err,
                       "SELECT step, time_ms, value FROM metrics WHERE series = ?1 AND step > ?2"
                       " AND attempt = ?3 ORDER BY step LIMIT ?4",
                       DT_INT(curve->series), DT_INT(after), DT_INT(attempt), DT_INT(most)));
    for (;;) {
        DT_TRY(dt_sql_next(&rows, &more, err));
        if (!more)
            break;
        point.step = *step = dt_sql_int(&rows);
        point.time_ms = dt_sql_int(&rows);
        point.value = dt_sql_real(&rows);
        take(context, &point);
        ++*given;
    }
out:
    dt_sql_close(&rows);
    return st;
}

static dt_status attempt_read(dt_store *store, dt_since *since, int64_t *given, int64_t run,
                              int64_t most, dt_store_take take, void *context, dt_arena *arena,
                              dt_error *err)
{
    dt_since_mark *marks;
    curve_ends *curves;
    int64_t count;
    dt_status st;

    DT_TRY(curves_read(store, &curves, &count, run, since->attempt, arena, err));
    marks = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(*marks));
    for (int64_t i = 0; i < count; i++) {
        marks[i] = (dt_since_mark){curves[i].series, step_of(since, curves[i].series)};
        if (marks[i].step < curves[i].last_step && *given < most)
            DT_TRY(points_give(store, &marks[i].step, given, &curves[i], since->attempt,
                               most - *given, take, context, err));
    }
    since->marks = marks;
    since->count = count;
out:
    return st;
}

dt_status dt_store_since_points(dt_store *store, dt_since *since, bool *more, const char *run,
                                int64_t most, dt_store_take take, void *context, dt_arena *arena,
                                dt_error *err)
{
    int64_t number, newest, given = 0;
    dt_sql_group group = {0};
    dt_status st;

    *more = false;
    DT_TRY(dt_sql_group_begin_reading(&group, store, err));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(newest_attempt(store, &newest, number, err));
    DT_TRY(attempt_read(store, since, &given, number, most, take, context, arena, err));
    *more = given == most || newest > since->attempt;
    if (given == 0 && newest > since->attempt) {
        since->attempt++;
        since->count = 0;
    }
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_version_seen(dt_store *store, int64_t *out, dt_error *err)
{
    return number_read(store, out, "SELECT data_version FROM pragma_data_version WHERE ?1", 1, err);
}
