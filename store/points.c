/* points: collects the points that a transaction adds, by curve, and writes them with their pyramid.
 *
 * Why        consecutive points of many curves belong to as many leaves of the table metrics. In the order of the
 *            curves, most points follow the one before, and one statement inserts many.
 * When       before the commit, and before a statement that uses the tables metrics or pyramid (dt_sql_open).
 * Once       an existing point is kept, and only an added point counts in the pyramid.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/store_int.h"

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
    bool ascending;      /* each has a larger step than the one before */
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

void dt_points_open(dt_store *store, const char *run, int64_t attempt, const char *name,
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

dt_status dt_points_add(dt_store *store, bool *open, const char *run, const dt_metric *point,
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
