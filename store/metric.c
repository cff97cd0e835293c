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
                            dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    void *items = NULL;

    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       "SELECT name FROM series WHERE run = ?1 ORDER BY name", DT_INT(run)));
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
    DT_TRY(names_read(store, out, count, number, arena, err));
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

static dt_status curve_read_row(void *item, dt_sql_rows *rows, dt_error *err)
{
    dt_store_curve *curve = item;

    curve->series = dt_sql_int(rows);
    curve->name = dt_sql_text(rows);
    return DT_OK;
}

dt_status dt_store_curves_find(dt_store *store, dt_store_curves *out, const char *run,
                               const char *name, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    void *items = NULL;
    int64_t number;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(last_steps_read(store, &out->last_steps, &out->attempts, number, arena, err));
    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       "SELECT series, name FROM series WHERE run = ?1"
                       " AND (?2 IS NULL OR name = ?2) ORDER BY name",
                       DT_INT(number), DT_TEXT(name)));
    DT_TRY(dt_sql_list(&rows, &items, &out->count, sizeof(*out->curves), curve_read_row, err));
    out->curves = items;
out:
    dt_sql_close(&rows);
    return st;
}

/* Whether a later attempt undid it, or it is of one that is younger than what was found. */
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

    /* an older attempt's point of a step comes before a newer's: the last one of a step counts */
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

typedef struct counted {
    int64_t count, last_step;
} counted;

static bool count_point(void *context, const dt_metric *point)
{
    counted *c = context;

    c->count++;
    c->last_step = point->step;
    return true;
}

/* Where one attempt has all points each of them counts, and SQLite does that faster than we look. */
static dt_status count_rows(dt_store *store, const dt_store_curve *curve, int64_t after_step,
                            counted *out, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    bool more;

    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err,
                       "SELECT count(*), max(step) FROM metrics WHERE series = ?1 AND step > ?2"
                       " AND attempt <= 1",
                       DT_INT(curve->series), DT_INT(after_step)));
    DT_TRY(dt_sql_next(&rows, &more, err));
    out->count = dt_sql_int(&rows);
    out->last_step = dt_sql_int(&rows);
out:
    dt_sql_close(&rows);
    return st;
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

typedef struct gathered {
    dt_metric *points;
    int64_t count, capacity;
    dt_arena *arena;
    bool no_memory;
} gathered;

static bool gather(void *context, const dt_metric *point)
{
    gathered *g = context;

    if (g->count == g->capacity) {
        dt_metric *moved;

        g->capacity = g->capacity > 0 ? g->capacity * 2 : 64;
        moved = dt_arena_alloc_array(g->arena, (size_t)g->capacity, sizeof(*moved));
        g->no_memory = moved == NULL;
        if (moved == NULL)
            return false;
        if (g->count > 0)
            memcpy(moved, g->points, (size_t)g->count * sizeof(*moved));
        g->points = moved;
    }
    g->points[g->count++] = *point;
    return true;
}

static dt_status all_points(dt_store *store, gathered *each, int64_t *total,
                            const dt_store_curves *curves, int64_t after_step, int64_t most,
                            dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < curves->count; i++) {
        DT_TRY(dt_store_curve_scan(store, curves, i, after_step, INT64_MAX, gather, &each[i], err));
        if (each[i].no_memory)
            DT_THROW(err, DT_ERR_NOMEM, "cannot read the metrics: no memory");
        each[i].count = thin(each[i].points, each[i].count, most);
        *total += each[i].count;
    }
out:
    return st;
}

dt_status dt_store_metric_list(dt_store *store, dt_metric **out, int64_t *count, const char *run,
                               const char *name, int64_t after_step, int64_t most, dt_arena *arena,
                               dt_error *err)
{
    dt_sql_group group = {0};
    dt_store_curves curves;
    gathered *each = NULL;
    dt_status st = DT_OK;
    int64_t total = 0;

    *out = NULL;
    *count = 0;
    DT_TRY(dt_sql_group_begin_reading(&group, store, err)); /* one moment for all names */
    DT_TRY(dt_store_curves_find(store, &curves, run, name, arena, err));
    each = dt_arena_alloc_array(arena, (size_t)curves.count + 1, sizeof(*each));
    if (each == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "cannot read the metrics: no memory");
    for (int64_t i = 0; i < curves.count; i++)
        each[i].arena = arena;
    DT_TRY(all_points(store, each, &total, &curves, after_step, most, err));
    *count = total;
    if (curves.count == 1) {
        *out = each[0].points;
    } else if (total > 0) {
        *out = dt_arena_alloc_array(arena, (size_t)total, sizeof(**out));
        if (*out == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "cannot read the metrics: no memory");
        for (int64_t i = 0, at = 0; i < curves.count; at += each[i++].count)
            if (each[i].count > 0)
                memcpy(*out + at, each[i].points, (size_t)each[i].count * sizeof(**out));
    }
out:
    return dt_sql_group_end(&group, st, err);
}
