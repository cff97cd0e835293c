/* buckets: reads a curve by its pyramid: in parts, or as last, lowest and highest value.
 *
 * Width      the least power of two that gives at most the requested number of parts; a part has the steps with
 *            the same step >> shift, so that the parts of a growing curve stay the same.
 * Attempts   an attempt's pyramid is used up to its last step that counts. Where a later attempt also has points
 *            at these steps (usually one step), the points are read and the newer one is used.
 */
#include <math.h>

#include "base/metric_kinds.h"
#include "store/store_int.h"

typedef struct reading {
    dt_store *store;
    int64_t series;
    const dt_store_curves *curves;
    int64_t which;
    dt_step_range
        *own; /* for each attempt, from 1: its steps that count, ignoring later attempts */
    /* Ranges, disjoint and in order, in which points of several attempts count. */
    dt_step_range *mixed;
    int64_t mixed_count;
} reading;

/* A division of a range of steps. */
typedef struct parts {
    int shift; /* a part has 2^shift steps */
    int64_t first, count;
    dt_pile *piles;
} parts;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- the steps of an attempt */

static dt_status step_of(dt_store *store, int64_t *out, const char *sql, int64_t series,
                         int64_t attempt, int64_t step, int64_t none, dt_error *err)
{
    bool found;

    *out = none;
    return DT_SQL_FIRST(out, &found, &dt_sql_one_int, store, NULL, err, sql, DT_INT(series),
                        DT_INT(attempt), DT_INT(step),
                        DT_INT(dt_step_bucket(step, dt_pyramid_shift(1))));
}

/* Finds the first and the last step of an attempt within `limits`. */
static dt_status ends_read(dt_store *store, dt_step_range *out, int64_t series, int64_t attempt,
                           dt_step_range limits, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t near; /* a step in the bucket with the wanted point */

    *out = (dt_step_range){INT64_MAX, INT64_MIN};
    DT_TRY(step_of(store, &near,
                   "SELECT first_step FROM pyramid WHERE series = ?1 AND attempt = ?2 AND level = 1"
                   " AND bucket >= ?4 AND last_step >= ?3 ORDER BY bucket LIMIT 1",
                   series, attempt, limits.from, INT64_MAX, err));
    DT_TRY(step_of(store, &out->from,
                   "SELECT step FROM metrics WHERE series = ?1 AND attempt = ?2 AND step >= ?3"
                   " AND ?4 IS NOT NULL ORDER BY step LIMIT 1",
                   series, attempt, most_of(near, limits.from), INT64_MAX, err));
    DT_TRY(step_of(store, &near,
                   "SELECT last_step FROM pyramid WHERE series = ?1 AND attempt = ?2 AND level = 1"
                   " AND bucket <= ?4 AND first_step <= ?3 ORDER BY bucket DESC LIMIT 1",
                   series, attempt, limits.to, INT64_MIN, err));
    DT_TRY(step_of(store, &out->to,
                   "SELECT step FROM metrics WHERE series = ?1 AND attempt = ?2 AND step <= ?3"
                   " AND ?4 IS NOT NULL ORDER BY step DESC LIMIT 1",
                   series, attempt, least(near, limits.to), INT64_MIN, err));
out:
    return st;
}

/* Adds a range that begins before all ranges so far, merging ranges that overlap. */
static void mixed_add(reading *r, dt_step_range add)
{
    if (add.from > add.to)
        return;
    while (r->mixed_count > 0 && add.to >= r->mixed[r->mixed_count - 1].from)
        add.to = most_of(add.to, r->mixed[--r->mixed_count].to);
    r->mixed[r->mixed_count++] = add;
}

/* Fills own and mixed, from the last attempt to the first. */
static dt_status attempts_read(reading *r, dt_step_range wanted, dt_arena *arena, dt_error *err)
{
    size_t count = (size_t)r->curves->attempts + 1;
    int64_t earliest = INT64_MAX; /* first step of the later attempts */
    dt_status st = DT_OK;

    r->own = dt_arena_alloc_array(arena, count, sizeof(*r->own));
    r->mixed = dt_arena_alloc_array(arena, count, sizeof(*r->mixed));
    for (int64_t a = r->curves->attempts - 1; a >= 0; a--) {
        int64_t last = r->curves->curves[r->which].by_time ? INT64_MAX : r->curves->last_steps[a];
        dt_step_range limits = {wanted.from, least(wanted.to, last)};

        DT_TRY(ends_read(r->store, &r->own[a], r->series, a + 1, limits, err));
        if (r->own[a].from > r->own[a].to)
            continue;
        mixed_add(r, (dt_step_range){earliest, r->own[a].to});
        earliest = least(earliest, r->own[a].from);
    }
out:
    return st;
}

/* --- points of all attempts */

typedef struct taker {
    dt_pile_take take;
    void *context;
} taker;

static bool take_point(void *context, const dt_metric *point)
{
    const taker *t = context;
    dt_pile pile = {0};

    dt_pile_add(&pile, point->step, point->time_ms, point->value);
    t->take(t->context, &pile);
    return true;
}

static dt_status piles_read(const reading *r, int shift, dt_pile_take take, void *context,
                            dt_error *err)
{
    taker t = {take, context};
    dt_status st = DT_OK;

    for (int64_t a = 0; a < r->curves->attempts; a++) {
        int64_t from = r->own[a].from;

        for (int64_t i = r->mixed_count - 1; i >= 0; i--) {
            dt_step_range mixed = r->mixed[i];

            if (mixed.to < from || mixed.from > r->own[a].to)
                continue;
            DT_TRY(dt_pyramid_read(r->store, r->series, a + 1, shift,
                                   (dt_step_range){from, mixed.from - 1}, take, context, err));
            from = mixed.to + 1;
        }
        DT_TRY(dt_pyramid_read(r->store, r->series, a + 1, shift,
                               (dt_step_range){from, r->own[a].to}, take, context, err));
    }
    for (int64_t i = 0; i < r->mixed_count; i++)
        DT_TRY(dt_store_curve_scan(r->store, r->curves, r->which, r->mixed[i].from - 1,
                                   r->mixed[i].to, take_point, &t, err));
out:
    return st;
}

static dt_step_range range_of(const reading *r)
{
    dt_step_range all = {INT64_MAX, INT64_MIN};

    for (int64_t a = 0; a < r->curves->attempts; a++) {
        all.from = least(all.from, r->own[a].from);
        all.to = most_of(all.to, r->own[a].to);
    }
    return all;
}

dt_status dt_curve_range(dt_store *store, dt_step_range *range, const dt_store_curves *curves,
                         int64_t which, dt_arena *arena, dt_error *err)
{
    reading r = {
        .store = store, .curves = curves, .which = which, .series = curves->curves[which].series};
    dt_status st = attempts_read(&r, *range, arena, err);

    if (st == DT_OK)
        *range = range_of(&r);
    return st;
}

dt_status dt_curve_piles(dt_store *store, const dt_store_curves *curves, int64_t which,
                         dt_step_range range, int shift, dt_pile_take take, void *context,
                         dt_arena *arena, dt_error *err)
{
    reading r = {
        .store = store, .curves = curves, .which = which, .series = curves->curves[which].series};
    dt_status st = attempts_read(&r, range, arena, err);

    return st == DT_OK ? piles_read(&r, shift, take, context, err) : st;
}

int dt_parts_shift(dt_step_range all, int64_t most)
{
    int shift = 0;

    while (dt_step_bucket(all.to, shift) - dt_step_bucket(all.from, shift) >= most)
        shift++;
    return shift;
}

/* --- division into parts */

static void take_pile(void *context, const dt_pile *pile)
{
    const parts *p = context;

    dt_pile_merge(&p->piles[dt_step_bucket(pile->first_step, p->shift) - p->first], pile);
}

/* Divides a range into at most `most` parts. */
static void parts_make(parts *p, dt_step_range all, int64_t most, dt_arena *arena)
{
    p->shift = dt_parts_shift(all, most);
    p->first = dt_step_bucket(all.from, p->shift);
    p->count = dt_step_bucket(all.to, p->shift) - p->first + 1;
    p->piles = dt_arena_alloc_array(arena, (size_t)p->count, sizeof(*p->piles));
    for (int64_t i = 0; i < p->count; i++)
        p->piles[i] = (dt_pile){0};
}

double dt_pile_mean(const dt_pile *pile)
{
    double mean = pile->total / (double)(pile->points - pile->not_finite);

    if (isnan(mean) || !isfinite(pile->total)) /* the sum exceeded the range of a double */
        mean = pile->low / 2 + pile->high / 2;
    return fmax(pile->low, fmin(pile->high, mean)); /* guards against rounding */
}

static dt_bucket bucket_of(const dt_pile *pile)
{
    return (dt_bucket){.first_step = pile->first_step,
                       .last_step = pile->last_step,
                       .first_ms = pile->first_ms,
                       .last_ms = pile->last_ms,
                       .points = pile->points,
                       .not_finite = pile->not_finite,
                       .min = pile->low,
                       .max = pile->high,
                       .mean = dt_pile_mean(pile),
                       .last = pile->last};
}

typedef struct bucket_list {
    dt_bucket *buckets;
    int64_t count, most;
} bucket_list;

static bool list_point(void *context, const dt_metric *point)
{
    bucket_list *l = context;
    dt_pile pile = {0};

    dt_pile_add(&pile, point->step, point->time_ms, point->value);
    l->buckets[l->count++] = bucket_of(&pile);
    return l->count < l->most;
}

/* Lists the parts that have points; if there are at most `most` points, lists each point as a bucket. */
static dt_status buckets_list(dt_bucket **out, int64_t *count, const reading *r, const parts *p,
                              dt_step_range all, int64_t most, dt_arena *arena, dt_error *err)
{
    bucket_list l = {.most = most};
    int64_t points = 0, filled = 0;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < p->count; i++) {
        points += p->piles[i].points;
        filled += p->piles[i].points > 0;
    }
    l.buckets = dt_arena_alloc_array(arena, (size_t)(points < most ? points : most) + 1,
                                     sizeof(*l.buckets));
    if (points <= most && points > filled)
        DT_TRY(dt_store_curve_scan(r->store, r->curves, r->which, all.from - 1, all.to, list_point,
                                   &l, err));
    else
        for (int64_t i = 0; i < p->count; i++)
            if (p->piles[i].points > 0)
                l.buckets[l.count++] = bucket_of(&p->piles[i]);
    *out = l.buckets;
    *count = l.count;
out:
    return st;
}

dt_status dt_store_curve_buckets(dt_store *store, dt_bucket **out, int64_t *count,
                                 const dt_store_curves *curves, int64_t which, int64_t from,
                                 int64_t to, int64_t most, dt_arena *arena, dt_error *err)
{
    reading r = {
        .store = store, .curves = curves, .which = which, .series = curves->curves[which].series};
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    dt_step_range all;
    parts p;

    *out = NULL;
    *count = 0;
    DT_TRY(dt_sql_group_begin_reading(&group, store, err)); /* one snapshot for all reads */
    DT_TRY(attempts_read(&r, (dt_step_range){from, to}, arena, err));
    all = range_of(&r);
    if (all.from > all.to)
        goto out;
    parts_make(&p, all, most, arena);
    DT_TRY(piles_read(&r, p.shift, take_pile, &p, err));
    DT_TRY(buckets_list(out, count, &r, &p, all, most, arena, err));
out:
    return dt_sql_group_end(&group, st, err);
}

/* --- the last, lowest and highest value of a curve, and the mean speed, for tables of many runs */

/* Leaves out points that a later attempt undid, as in curve.c. */
#define NOT_UNDONE                                                               \
    " AND (" DT_SQL_BY_TIME(                                                     \
        "s.name") " OR NOT EXISTS (SELECT 1 FROM attempts a WHERE a.run = s.run" \
                  " AND a.attempt > m.attempt AND a.start_step < m.step))"
#define OF_SERIES                                 \
    " FROM runs r JOIN series s ON s.run = r.run" \
    " JOIN metrics m ON m.series = s.series"      \
    " WHERE r.id = ?1 AND s.name = ?2" NOT_UNDONE

static const char last_sql[] =
    "SELECT m.value, m.step" OF_SERIES " ORDER BY m.step DESC, m.attempt DESC LIMIT 1";
static const char lowest_sql[] =
    "SELECT m.value, m.step" OF_SERIES " AND m.value IS NOT NULL ORDER BY m.value, m.step LIMIT 1";
static const char highest_sql[] = "SELECT m.value, m.step" OF_SERIES
                                  " AND m.value IS NOT NULL ORDER BY m.value DESC, m.step LIMIT 1";

dt_status dt_store_metric_end(dt_store *store, dt_metric_end *out, const char *run,
                              const char *name, dt_metric_which which, dt_error *err)
{
    static const char *const texts[] = {[DT_METRIC_LAST] = last_sql,
                                        [DT_METRIC_LOWEST] = lowest_sql,
                                        [DT_METRIC_HIGHEST] = highest_sql};
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;
    bool more;

    *out = (dt_metric_end){.value = NAN};
    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err, texts[which], DT_TEXT(run), DT_TEXT(name)));
    DT_TRY(dt_sql_next(&rows, &more, err));
    if (more) {
        out->there = true;
        out->value = dt_sql_real(&rows);
        out->step = dt_sql_int(&rows);
    }
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_metric_known(dt_store *store, bool *known, const char *name, dt_error *err)
{
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;

    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err, "SELECT 1 FROM series WHERE name = ?1 LIMIT 1",
                       DT_TEXT(name)));
    DT_TRY(dt_sql_next(&rows, known, err));
out:
    dt_sql_close(&rows);
    return st;
}

/* --- speed */

enum { SPEED_BUCKETS_MOST = 2000 };

/* Uses only the points of a fork itself: those up to parent_step were copied from the parent. Every point has the same
 * number of tokens, so that (number of points) / (sum over buckets of points / mean) is all tokens over the time of all
 * steps. If a bucket has several points, its mean replaces them, which is too fast by the square of their relative
 * spread (5 %: 0.25 %). */
dt_status dt_store_run_mean_speed(dt_store *store, double *out, const dt_run *run, dt_arena *arena,
                                  dt_error *err)
{
    double taken = 0, seconds_per_token = 0;
    dt_store_curves curves;
    dt_bucket *buckets;
    dt_status st = DT_OK;
    int64_t count = 0;

    *out = run->tokens_per_second;
    DT_TRY(dt_store_curves_find(store, &curves, run->id,
                                dt_metric_name(DT_METRIC_TOKENS_PER_SECOND), arena, err));
    if (curves.count > 0)
        DT_TRY(dt_store_curve_buckets(store, &buckets, &count, &curves, 0, run->parent_step + 1,
                                      INT64_MAX, SPEED_BUCKETS_MOST, arena, err));
    for (int64_t i = 0; i < count; i++) {
        double points = (double)(buckets[i].points - buckets[i].not_finite);

        if (buckets[i].mean > 0) {
            seconds_per_token += points / buckets[i].mean;
            taken += points;
        }
    }
    if (taken > 0)
        *out = taken / seconds_per_token;
out:
    return st;
}
