/* metric: stores the points of the curves, append-only.
 *
 * The key of a point is (series, step, attempt). An existing point is kept, so that an event that arrives twice changes
 * nothing. A transaction writes its points together.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/repair.h"
#include "store/store_int.h"

/* points: collects the points that a transaction adds, by curve, and writes them with their pyramid.
 *
 * Why        consecutive points of many curves belong to as many leaves of the table metrics. In the order of the
 *            curves, most points follow the one before, and one statement inserts many.
 * When       before the commit, and before a statement that uses the tables metrics or pyramid (dt_sql_open).
 * Once       an existing point is kept, and only an added point counts in the pyramid.
 */

enum {
    CURVES_FIRST = 64,
    POINTS_MOST = 1 << 16, /* in memory */
    ROWS_MOST = 32,        /* of one statement */
    NO_POINT = -1
};

typedef struct collected {
    int64_t step, time_ms;
    double value;
    int32_t next; /* of the same curve, or NO_POINT */
} collected;

typedef struct open_curve {
    const char *run, *name; /* NULL: a free slot */
    dt_open_piles piles;
    int32_t first, last; /* the points that are not yet written; first NO_POINT: none */
    bool ascending;      /* each of these points has a larger step than the one before */
} open_curve;

struct dt_points {
    dt_arena texts;
    open_curve *slots; /* a hash table, at most half full */
    size_t capacity, count;
    collected *points;
    int32_t points_count;
    bool piles; /* some were changed and not written */
    bool writing;
};

/* --- rows */

#define ROWS_8 \
    "(?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?)"

/* Inserts `count` points of a curve, those that do not exist; *added: how many. */
static dt_status rows_insert(dt_store *store, const open_curve *curve, const collected *const *rows,
                             int count, int *added, dt_error *err)
{
    static const char sql[] =
        "INSERT INTO metrics (series, attempt, step, value, time_ms) SELECT ?1, ?2, column1,"
        " column2, column3 FROM (VALUES " ROWS_8 ", " ROWS_8 ", " ROWS_8 ", " ROWS_8 ") WHERE true"
        " LIMIT ? ON CONFLICT (series, step, attempt) DO NOTHING";
    dt_sql_value values[2 + 3 * ROWS_MOST + 1] = {DT_INT(curve->piles.series),
                                                  DT_INT(curve->piles.attempt)};
    dt_sql_value *value = values + 2;
    dt_status st;

    for (int i = 0; i < ROWS_MOST; i++) {
        const collected *row = rows[i < count ? i : 0];

        *value++ = (dt_sql_value)DT_INT(row->step);
        *value++ = (dt_sql_value)DT_REAL(row->value);
        *value++ = (dt_sql_value)DT_INT(row->time_ms);
    }
    *value = (dt_sql_value)DT_INT(count);
    st = dt_sql_run(store, sql, values, sizeof(values) / sizeof(values[0]), err);
    *added = sqlite3_changes(store->db);
    return st;
}

/* Whether none of a curve's collected points can exist already. */
static dt_status are_new(dt_store *store, bool *all_new, const open_curve *curve, dt_error *err)
{
    const collected *points = store->points->points;
    dt_status st = DT_OK;
    int64_t one;
    bool found = true;

    if (curve->ascending)
        DT_TRY(DT_SQL_FIRST(&one, &found, &dt_sql_one_int, store, NULL, err,
                            "SELECT 1 FROM metrics WHERE series = ?1 AND step BETWEEN ?2 AND ?3"
                            " AND attempt = ?4 LIMIT 1",
                            DT_INT(curve->piles.series), DT_INT(points[curve->first].step),
                            DT_INT(points[curve->last].step), DT_INT(curve->piles.attempt)));
out:
    *all_new = !found;
    return st;
}

static dt_status curve_write(dt_store *store, open_curve *curve, dt_error *err)
{
    const collected *points = store->points->points, *rows[ROWS_MOST];
    dt_status st = DT_OK;
    bool all_new;

    DT_TRY(are_new(store, &all_new, curve, err));
    for (int32_t at = curve->first; at != NO_POINT;) {
        int count = 0, added;

        do {
            rows[count++] = &points[at];
            at = points[at].next;
        } while (at != NO_POINT && all_new && count < ROWS_MOST);
        DT_TRY(rows_insert(store, curve, rows, count, &added, err));
        if (all_new && added != count)
            DT_TRY(dt_sql_fail(store, SQLITE_CORRUPT, "write the run store", err));
        for (int i = 0; i < added; i++)
            DT_TRY(dt_open_piles_add(store, &curve->piles, rows[i]->step, rows[i]->time_ms,
                                     rows[i]->value, err));
    }
    curve->first = NO_POINT;
out:
    return st;
}

static int by_series(const void *left, const void *right)
{
    const dt_open_piles *a = &(*(open_curve *const *)left)->piles,
                        *b = &(*(open_curve *const *)right)->piles;

    if (a->series != b->series)
        return a->series < b->series ? -1 : 1;
    return a->attempt < b->attempt ? -1 : a->attempt > b->attempt;
}

static dt_status curves_write(dt_store *store, bool with_piles, dt_error *err)
{
    dt_points *all = store->points;
    open_curve **curves = dt_calloc(all->count, sizeof(*curves));
    dt_status st = DT_OK;
    size_t count = 0;

    for (size_t i = 0; i < all->capacity; i++)
        if (all->slots[i].run != NULL)
            curves[count++] = &all->slots[i];
    qsort(curves, count, sizeof(*curves), by_series);
    for (size_t i = 0; i < count; i++) {
        if (curves[i]->first != NO_POINT)
            DT_TRY(curve_write(store, curves[i], err));
        if (with_piles)
            DT_TRY(dt_open_piles_write(store, &curves[i]->piles, err));
    }
    all->points_count = 0;
    all->piles = !with_piles;
out:
    free(curves);
    return st;
}

static dt_status points_write(dt_store *store, bool with_piles, dt_error *err)
{
    dt_points *all = store->points;
    dt_status st;

    if (all->writing || sqlite3_get_autocommit(store->db) != 0 ||
        (all->points_count == 0 && !(with_piles && all->piles)))
        return DT_OK;
    all->writing = true;
    store->point_changes++;
    st = curves_write(store, with_piles, err);
    all->writing = false;
    store->points_lost |= st != DT_OK;
    return st;
}

static void points_discard(dt_store *store)
{
    dt_points *all = store->points;

    if (all->count == 0)
        return;
    memset(all->slots, 0, all->capacity * sizeof(*all->slots));
    dt_arena_reset(&all->texts);
    all->count = 0;
    all->points_count = 0;
    all->piles = false;
}

static void points_free(dt_store *store)
{
    dt_arena_release(&store->points->texts);
    free(store->points->slots);
    free(store->points->points);
    free(store->points);
}

static const dt_store_gatherer gatherer = {points_write, points_discard, points_free};

/* --- curves */

static open_curve *slot_of(const dt_points *all, const char *run, int64_t attempt, const char *name)
{
    uint64_t hash = 1469598103934665603u ^ (uint64_t)attempt;

    for (const char *at = run; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 1099511628211u;
    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 1099511628211u;
    /* Mixes the bits: names often differ only in their last letter, which has moved few bits so far. */
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    for (size_t i = (size_t)(hash >> 32);; i++) {
        open_curve *slot = &all->slots[i & (all->capacity - 1)];

        if (slot->run == NULL || (slot->piles.attempt == attempt && strcmp(slot->name, name) == 0 &&
                                  strcmp(slot->run, run) == 0))
            return slot;
    }
}

static void grow(dt_points *all)
{
    dt_points larger = *all;

    if (all->count * 2 < all->capacity)
        return;
    larger.capacity = all->capacity > 0 ? all->capacity * 2 : CURVES_FIRST;
    larger.slots = dt_calloc(larger.capacity, sizeof(*larger.slots));
    for (size_t i = 0; i < all->capacity; i++) {
        const open_curve *curve = &all->slots[i];

        if (curve->run != NULL)
            *slot_of(&larger, curve->run, curve->piles.attempt, curve->name) = *curve;
    }
    free(all->slots);
    *all = larger;
}

/* Opens a curve until the end of the transaction. */
static void points_open(dt_store *store, const char *run, int64_t attempt, const char *name,
                        int64_t series)
{
    dt_points *all = store->points;
    open_curve *curve;

    if (all == NULL) {
        all = dt_calloc(1, sizeof(*all));
        dt_arena_init(&all->texts, 0);
        all->points = dt_calloc(POINTS_MOST, sizeof(*all->points));
        store->points = all;
        store->gatherer = &gatherer;
    }
    grow(all);
    curve = slot_of(all, run, attempt, name);
    curve->name = dt_arena_strndup(&all->texts, name, strlen(name));
    curve->run = dt_arena_strndup(&all->texts, run, strlen(run));
    curve->piles = (dt_open_piles){.series = series, .attempt = attempt};
    curve->first = NO_POINT;
    all->count++;
}

/* Collects a point that a transaction adds, if the curve is open in this transaction (*open). After a failure the
 * transaction cannot commit. */
static dt_status points_add(dt_store *store, bool *open, const char *run, const dt_metric *point,
                            dt_error *err)
{
    dt_points *all = store->points;
    open_curve *curve =
        all != NULL && all->count > 0 ? slot_of(all, run, point->attempt, point->name) : NULL;
    int32_t at;

    *open = curve != NULL && curve->run != NULL;
    if (!*open)
        return DT_OK;
    if (all->points_count ==
        POINTS_MOST) /* they could not be written, and stay until the transaction ends */
        return DT_FAIL(err, DT_ERR_IO,
                       "cannot write the run store: an earlier write of this transaction failed");
    at = all->points_count++;
    all->points[at] = (collected){point->step, point->time_ms, point->value, NO_POINT};
    if (curve->first == NO_POINT) {
        curve->first = at;
        curve->ascending = true;
    } else {
        curve->ascending = curve->ascending && all->points[curve->last].step < point->step;
        all->points[curve->last].next = at;
    }
    curve->last = at;
    store->point_changes++;
    return all->points_count == POINTS_MOST ? points_write(store, false, err) : DT_OK;
}

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

    DT_TRY(points_add(store, &open, run, point, err));
    if (open)
        goto out;
    DT_TRY(series_find(store, &series, run, point->name, err));
    points_open(store, run, point->attempt, point->name, series);
    DT_TRY(points_add(store, &open, run, point, err));
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
    return DT_SQL_LIST_OF_RUN(
        out, count, &dt_sql_one_text, store, run, arena, err,
        "SELECT name FROM series WHERE run = ?1 AND NOT " DT_SQL_BY_TIME("name") " ORDER BY name");
}

typedef struct gathered {
    dt_metric *points;
    int64_t count, capacity;
    dt_arena *arena;
} gathered;

static bool gather(void *context, const dt_metric *point)
{
    gathered *g = context;

    g->points =
        dt_arena_array_room(g->arena, g->points, g->count + 1, &g->capacity, sizeof(*g->points));
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
