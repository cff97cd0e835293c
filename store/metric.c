/* metric: stores the points of the curves, append-only.
 *
 * The key of a point is (series, step, attempt). An existing point is kept, so that an event that arrives twice changes
 * nothing. A transaction writes its points together (points.c).
 */
#include "store/repair.h"
#include "store/store_int.h"

#include <string.h>

/* Finds the number of a metric, or adds the metric. */
static dt_status series_find(dt_store *store, int64_t *series, const char *run, const char *name,
                             dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;
    bool found;

    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_FIRST(series, &found, &dt_sql_one_int, store, NULL, err,
                        "SELECT series FROM series WHERE run = ?1 AND name = ?2", DT_INT(number),
                        DT_TEXT(name)));
    if (!found) {
        DT_TRY(DT_SQL_RUN(store, err, "INSERT INTO series (run, name) VALUES (?1, ?2)",
                          DT_INT(number), DT_TEXT(name)));
        *series = sqlite3_last_insert_rowid(store->db);
    }
out:
    return st;
}

static dt_status point_add(dt_store *store, const char *run, const dt_metric *point, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t series;
    bool open;

    DT_TRY(dt_points_add(store, &open, run, point, err));
    if (open)
        goto out;
    DT_TRY(series_find(store, &series, run, point->name, err));
    dt_points_open(store, run, point->attempt, point->name, series);
    DT_TRY(dt_points_add(store, &open, run, point, err));
out:
    return st;
}

dt_status dt_store_metric_add(dt_store *store, const char *run, int64_t attempt, int64_t step,
                              const char *name, double value, int64_t time_ms, dt_error *err)
{
    const dt_metric point = {
        .attempt = attempt, .step = step, .time_ms = time_ms, .name = name, .value = value};
    dt_sql_group group = {0};
    dt_status st = DT_OK;

    if (sqlite3_get_autocommit(store->db) == 0)
        return point_add(store, run, &point, err);
    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(point_add(store, run, &point, err));
out:
    return dt_sql_group_end(&group, st, err);
}

/* A point with another time also counts: an earlier event wrote it, and takes precedence. */
dt_status dt_store_metric_has(dt_store *store, bool *has, const char *run, const dt_metric *point,
                              dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};

    *has = false;
    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err,
                       "SELECT m.value IS ?5 OR m.time_ms <> ?6 FROM metrics m"
                       " JOIN series s USING (series) JOIN runs r USING (run)"
                       " WHERE r.id = ?1 AND s.name = ?2 AND m.step = ?3 AND m.attempt = ?4",
                       DT_TEXT(run), DT_TEXT(point->name), DT_INT(point->step),
                       DT_INT(point->attempt), DT_REAL(point->value), DT_INT(point->time_ms)));
    DT_TRY(dt_sql_next(&rows, has, err));
    *has = *has && dt_sql_int(&rows) != 0;
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_metric_mend(dt_store *store, const char *run, const dt_metric *point,
                               dt_error *err)
{
    return DT_SQL_RUN(store, err,
                      "UPDATE metrics SET value = ?5 WHERE series = (SELECT series FROM series"
                      " JOIN runs USING (run) WHERE id = ?1 AND series.name = ?2) AND step = ?3"
                      " AND attempt = ?4 AND time_ms = ?6 AND value IS NOT ?5",
                      DT_TEXT(run), DT_TEXT(point->name), DT_INT(point->step),
                      DT_INT(point->attempt), DT_REAL(point->value), DT_INT(point->time_ms));
}

dt_status dt_store_metric_names(dt_store *store, const char ***out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(out, count, &dt_sql_one_text, store, run, arena, err,
                              "SELECT name FROM series WHERE run = ?1 ORDER BY name");
}

typedef struct gathered {
    dt_metric *points;
    int64_t count, capacity;
    dt_arena *arena;
} gathered;

static bool gather(void *context, const dt_metric *point)
{
    gathered *g = context;

    if (g->count == g->capacity) {
        dt_metric *moved;

        g->capacity = g->capacity > 0 ? g->capacity * 2 : 64;
        moved = dt_arena_alloc_array(g->arena, (size_t)g->capacity, sizeof(*moved));
        if (g->count > 0)
            memcpy(moved, g->points, (size_t)g->count * sizeof(*moved));
        g->points = moved;
    }
    g->points[g->count++] = *point;
    return true;
}

static dt_status all_points(dt_store *store, gathered *each, int64_t *total,
                            const dt_store_curves *curves, int64_t after_step, bool newest,
                            dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < curves->count; i++) {
        if (newest)
            DT_TRY(dt_store_curve_newest(store, curves, i, after_step, gather, &each[i], err));
        else
            DT_TRY(dt_store_curve_scan(store, curves, i, after_step, INT64_MAX, gather, &each[i],
                                       err));
        *total += each[i].count;
    }
out:
    return st;
}

dt_status dt_store_metric_list(dt_store *store, dt_metric **out, int64_t *count, const char *run,
                               const char *name, int64_t after_step, bool newest, dt_arena *arena,
                               dt_error *err)
{
    dt_sql_group group = {0};
    dt_store_curves curves;
    gathered *each = NULL;
    dt_status st = DT_OK;
    int64_t total = 0;

    *out = NULL;
    *count = 0;
    DT_TRY(dt_sql_group_begin_reading(&group, store, err)); /* one snapshot for all names */
    DT_TRY(dt_store_curves_find(store, &curves, run, name, arena, err));
    each = dt_arena_alloc_array(arena, (size_t)curves.count + 1, sizeof(*each));
    for (int64_t i = 0; i < curves.count; i++)
        each[i].arena = arena;
    DT_TRY(all_points(store, each, &total, &curves, after_step, newest, err));
    *count = total;
    if (curves.count == 1) {
        *out = each[0].points;
    } else if (total > 0) {
        *out = dt_arena_alloc_array(arena, (size_t)total, sizeof(**out));
        for (int64_t i = 0, at = 0; i < curves.count; at += each[i++].count)
            if (each[i].count > 0)
                memcpy(*out + at, each[i].points, (size_t)each[i].count * sizeof(**out));
    }
out:
    return dt_sql_group_end(&group, st, err);
}

/* --- the past of a fork */

static dt_status copy_metric(dt_store *store, const char *run, const char *from, const char *name,
                             int64_t step, dt_error *err)
{
    dt_status st = DT_OK;
    dt_metric *points;
    dt_arena arena;
    int64_t count;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_metric_list(store, &points, &count, from, name, -1, 0, &arena, err));
    for (int64_t i = 0; i < count && points[i].step <= step; i++)
        DT_TRY(dt_store_metric_add(store, run, 1, points[i].step, name, points[i].value,
                                   points[i].time_ms, err));
out:
    dt_arena_release(&arena);
    return st;
}

dt_status dt_store_run_copy_past(dt_store *store, const char *run, const char *from, int64_t step,
                                 dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    const char **names;
    dt_arena arena;
    int64_t count;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_metric_names(store, &names, &count, from, &arena, err));
    for (int64_t i = 0; i < count; i++)
        DT_TRY(copy_metric(store, run, from, names[i], step, err));
out:
    dt_arena_release(&arena);
    return dt_sql_group_end(&group, st, err);
}
