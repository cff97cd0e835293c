/* metric: points of the curves, append-only.
 *
 * A point is (series, step, attempt). One that is there already stays as it is, so that an event
 * that is sent twice changes nothing. A run's history is one line: where an attempt started again
 * from step s, the points that older attempts have after s were undone and are left out; at s
 * itself, which both may have, the newer is taken.
 */
#include "store/store_int.h"

#include <string.h>

#include "base/banned.h"

static dt_status series_number(dt_store *store, int64_t *series, int64_t run, const char *name,
                               bool *found, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};

    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err,
                       "SELECT series FROM series WHERE run = ?1 AND name = ?2", DT_INT(run),
                       DT_TEXT(name)));
    DT_TRY(dt_sql_next(&rows, found, err));
    if (*found)
        *series = dt_sql_int(&rows);
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_metric_add(dt_store *store, const char *run, int64_t attempt, int64_t step,
                              const char *name, double value, int64_t time_ms, dt_error *err)
{
    dt_sql_group group = {0};
    int64_t number, series = 0;
    dt_status st = DT_OK;
    bool found;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(series_number(store, &series, number, name, &found, err));
    if (!found) {
        DT_TRY(DT_SQL_RUN(store, err, "INSERT INTO series (run, name) VALUES (?1, ?2)",
                          DT_INT(number), DT_TEXT(name)));
        series = sqlite3_last_insert_rowid(store->db);
    }
    DT_TRY(DT_SQL_RUN(store, err,
                      "INSERT INTO metrics (series, step, attempt, value, time_ms)"
                      " VALUES (?1, ?2, ?3, ?4, ?5)"
                      " ON CONFLICT (series, step, attempt) DO NOTHING",
                      DT_INT(series), DT_INT(step), DT_INT(attempt), DT_REAL(value),
                      DT_INT(time_ms)));
out:
    return dt_sql_group_end(&group, st, err);
}

static dt_status metric_read(void *item, dt_sql_rows *rows, dt_error *err)
{
    dt_metric *metric = item;

    metric->attempt = dt_sql_int(rows);
    metric->step = dt_sql_int(rows);
    metric->time_ms = dt_sql_int(rows);
    metric->value = dt_sql_real(rows);
    return DT_OK;
}

static dt_status name_read(void *item, dt_sql_rows *rows, dt_error *err)
{
    *(const char **)item = dt_sql_text(rows);
    return DT_OK;
}

static dt_status number_read(void *item, dt_sql_rows *rows, dt_error *err)
{
    *(int64_t *)item = dt_sql_int(rows);
    return DT_OK;
}

static dt_status names_read(dt_store *store, const char ***out, int64_t *count, int64_t run,
                            const char *only, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    void *items = NULL;

    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       "SELECT name FROM series WHERE run = ?1 AND (?2 IS NULL OR name = ?2)"
                       " ORDER BY name",
                       DT_INT(run), DT_TEXT(only)));
    DT_TRY(dt_sql_list(&rows, &items, count, sizeof(char *), name_read, err));
    *out = items;
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_metric_names(dt_store *store, const char ***out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    *out = NULL;
    *count = 0;
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(names_read(store, out, count, number, NULL, arena, err));
out:
    return st;
}

/* For each attempt, from 1, the last step of it that counts: where the earliest of the later ones
 * starts. */
static dt_status last_steps_read(dt_store *store, int64_t **out, int64_t *count, int64_t run,
                                 dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    int64_t *steps, earliest = INT64_MAX;
    void *items = NULL;

    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       "SELECT start_step FROM attempts WHERE run = ?1 ORDER BY attempt",
                       DT_INT(run)));
    DT_TRY(dt_sql_list(&rows, &items, count, sizeof(*steps), number_read, err));
    steps = items;
    for (int64_t i = *count - 1; i >= 0; i--) {
        int64_t start = steps[i];

        steps[i] = earliest;
        earliest = start < earliest ? start : earliest;
    }
    *out = steps;
out:
    dt_sql_close(&rows);
    return st;
}

/* Leaves out what a later attempt undid, and of points with one step all but the newest. */
static int64_t drop_undone(dt_metric *points, int64_t count, const int64_t *last_steps,
                           int64_t attempts)
{
    int64_t kept = 0;

    for (int64_t i = 0; i < count; i++) {
        int64_t attempt = points[i].attempt;

        if (attempt >= 1 && attempt <= attempts && points[i].step > last_steps[attempt - 1])
            continue;
        if (kept > 0 && points[kept - 1].step == points[i].step)
            kept--;
        points[kept++] = points[i];
    }
    return kept;
}

/* Evenly by index, first and last kept; returns how many are left. */
static int64_t thin(dt_metric *points, int64_t count, int64_t most)
{
    if (most <= 0 || count <= most)
        return count;
    if (most == 1) {
        points[0] = points[count - 1];
        return 1;
    }
    for (int64_t i = 0; i < most; i++)
        points[i] = points[(int64_t)((double)i * (double)(count - 1) / (double)(most - 1) + 0.5)];
    return most;
}

/* One name's points, in order of steps, an older attempt's before a newer's. */
static dt_status curve_read(dt_store *store, dt_metric **out, int64_t *count, int64_t run,
                            const char *name, int64_t after_step, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    void *items = NULL;

    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       "SELECT attempt, step, time_ms, value FROM metrics WHERE series ="
                       " (SELECT series FROM series WHERE run = ?1 AND name = ?2)"
                       " AND step > ?3 ORDER BY step, attempt",
                       DT_INT(run), DT_TEXT(name), DT_INT(after_step)));
    DT_TRY(dt_sql_list(&rows, &items, count, sizeof(**out), metric_read, err));
    *out = items;
    for (int64_t i = 0; i < *count; i++)
        (*out)[i].name = name;
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_metric_list(dt_store *store, dt_metric **out, int64_t *count, const char *run,
                               const char *name, int64_t after_step, int64_t most, dt_arena *arena,
                               dt_error *err)
{
    dt_sql_group group = {0};
    const char **names = NULL;
    dt_metric **curves = NULL;
    int64_t *sizes = NULL, *last_steps, name_count = 0, attempts, number, total = 0;
    dt_status st = DT_OK;

    *out = NULL;
    *count = 0;
    DT_TRY(dt_sql_group_begin_reading(&group, store, err)); /* one moment for all names */
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(names_read(store, &names, &name_count, number, name, arena, err));
    DT_TRY(last_steps_read(store, &last_steps, &attempts, number, arena, err));
    curves = dt_arena_alloc_array(arena, (size_t)name_count + 1, sizeof(*curves));
    sizes = dt_arena_alloc_array(arena, (size_t)name_count + 1, sizeof(*sizes));
    if (curves == NULL || sizes == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "cannot read the metrics: no memory");
    for (int64_t i = 0; i < name_count; i++) {
        DT_TRY(curve_read(store, &curves[i], &sizes[i], number, names[i], after_step, arena, err));
        sizes[i] = drop_undone(curves[i], sizes[i], last_steps, attempts);
        sizes[i] = thin(curves[i], sizes[i], most);
        total += sizes[i];
    }
    if (name_count == 1) {
        *out = curves[0];
    } else if (total > 0) {
        *out = dt_arena_alloc_array(arena, (size_t)total, sizeof(**out));
        if (*out == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "cannot read the metrics: no memory");
        for (int64_t i = 0, at = 0; i < name_count; at += sizes[i++])
            if (sizes[i] > 0)
                memcpy(*out + at, curves[i], (size_t)sizes[i] * sizeof(**out));
    }
    *count = total;
out:
    return dt_sql_group_end(&group, st, err);
}
