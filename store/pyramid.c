/* pyramid: keeps, for every curve of an attempt, summaries of each 64, 1024, 16384 and 262144 steps.
 *
 * Invariant  a row of the table pyramid agrees with its points in the table metrics at every commit.
 * How        added points are collected in memory: for each curve the newest bucket of each level. A bucket is
 *            merged into its row when a point of another bucket comes, and all buckets before the transaction
 *            ends. Merging makes the order of points irrelevant.
 * Attempts   each attempt has its own pyramid: which points count is decided when they are read (buckets.c),
 *            because a later attempt can undo them.
 */
#include "store/store_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#include "base/banned.h"

#define CURVES_FIRST 64

/* The piles of one attempt's curve that were not yet written as rows. */
typedef struct open_piles {
    int64_t series, attempt;
    int64_t bucket[DT_PYRAMID_LEVELS];
    dt_pile pile[DT_PYRAMID_LEVELS]; /* points 0: empty */
} open_piles;

typedef struct open_curve {
    const char *run, *name; /* NULL: a free slot */
    open_piles piles;
} open_curve;

struct dt_pyramid {
    dt_arena texts;
    open_curve *slots; /* a hash table, at most half full */
    size_t capacity, count;
    bool failed; /* a row was not written: the transaction must not commit */
};

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

static dt_status pile_write(dt_store *store, const open_piles *g, int level, dt_error *err)
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

static dt_status gathered_write(dt_store *store, open_piles *g, dt_error *err)
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

static dt_status gathered_add(dt_store *store, open_piles *g, int64_t step, int64_t time_ms,
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

/* --- curves with points added in this transaction */

static dt_status before_commit(dt_store *store, dt_error *err)
{
    dt_pyramid *pyramid = store->pyramid;
    dt_status st = DT_OK;

    if (pyramid->failed)
        DT_THROW(err, DT_ERR_IO, "cannot write the run store: a point of this change was lost");
    for (size_t i = 0; i < pyramid->capacity && pyramid->count > 0; i++)
        if (pyramid->slots[i].run != NULL)
            DT_TRY(gathered_write(store, &pyramid->slots[i].piles, err));
out:
    pyramid->failed = st != DT_OK;
    return st;
}

static void after_end(dt_store *store)
{
    dt_pyramid *pyramid = store->pyramid;

    if (pyramid->count > 0)
        memset(pyramid->slots, 0, pyramid->capacity * sizeof(*pyramid->slots));
    dt_arena_reset(&pyramid->texts);
    pyramid->count = 0;
    pyramid->failed = false;
}

static void pyramid_free(dt_store *store)
{
    dt_arena_release(&store->pyramid->texts);
    free(store->pyramid->slots);
    free(store->pyramid);
}

static const dt_store_gatherer gatherer = {before_commit, after_end, pyramid_free};

static open_curve *slot_of(const dt_pyramid *pyramid, const char *run, int64_t attempt,
                           const char *name)
{
    uint64_t hash = 1469598103934665603u ^ (uint64_t)attempt;

    for (const char *at = run; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 1099511628211u;
    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 1099511628211u;
    /* Mixes the bits: names often differ only in their last letter, which has moved few bits so far. */
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    for (size_t i = (size_t)(hash >> 32);; i++) {
        open_curve *slot = &pyramid->slots[i & (pyramid->capacity - 1)];

        if (slot->run == NULL || (slot->piles.attempt == attempt && strcmp(slot->name, name) == 0 &&
                                  strcmp(slot->run, run) == 0))
            return slot;
    }
}

static void grow(dt_pyramid *pyramid)
{
    dt_pyramid larger = *pyramid;

    if (pyramid->count * 2 < pyramid->capacity)
        return;
    larger.capacity = pyramid->capacity > 0 ? pyramid->capacity * 2 : CURVES_FIRST;
    larger.slots = dt_calloc(larger.capacity, sizeof(*larger.slots));
    for (size_t i = 0; i < pyramid->capacity; i++) {
        const open_curve *curve = &pyramid->slots[i];

        if (curve->run != NULL)
            *slot_of(&larger, curve->run, curve->piles.attempt, curve->name) = *curve;
    }
    free(pyramid->slots);
    *pyramid = larger;
}

bool dt_pyramid_series(const dt_store *store, int64_t *series, const char *run, int64_t attempt,
                       const char *name)
{
    const open_curve *curve;

    if (store->pyramid == NULL || store->pyramid->count == 0)
        return false;
    curve = slot_of(store->pyramid, run, attempt, name);
    if (curve->run != NULL)
        *series = curve->piles.series;
    return curve->run != NULL;
}

static open_curve *curve_open(dt_store *store, const char *run, int64_t attempt, const char *name,
                              int64_t series)
{
    dt_pyramid *pyramid = store->pyramid;
    open_curve *curve;

    if (pyramid == NULL) {
        pyramid = dt_calloc(1, sizeof(*pyramid));
        dt_arena_init(&pyramid->texts, 0);
        store->pyramid = pyramid;
        store->gatherer = &gatherer;
    }
    grow(pyramid);
    curve = slot_of(pyramid, run, attempt, name);
    if (curve->run != NULL)
        return curve;
    curve->name = dt_arena_strndup(&pyramid->texts, name, strlen(name));
    curve->run = dt_arena_strndup(&pyramid->texts, run, strlen(run));
    curve->piles = (open_piles){.series = series, .attempt = attempt};
    pyramid->count++;
    return curve;
}

dt_status dt_pyramid_add(dt_store *store, const dt_metric *point, const char *run, int64_t series,
                         dt_error *err)
{
    open_curve *curve = curve_open(store, run, point->attempt, point->name, series);
    dt_status st =
        gathered_add(store, &curve->piles, point->step, point->time_ms, point->value, err);

    if (st != DT_OK)
        store->pyramid->failed = true;
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
    open_piles g = {0};
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
            DT_TRY(gathered_write(store, &g, err));
        g.series = series;
        g.attempt = attempt;
        DT_TRY(gathered_add(store, &g, step, time_ms, dt_sql_real(&rows), err));
    }
    DT_TRY(gathered_write(store, &g, err));
out:
    dt_sql_close(&rows);
    return st;
}
