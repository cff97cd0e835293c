/* band: computes the band of a metric over several runs from their pyramids.
 *
 * Width      parts that are narrower than a level of the pyramid, by a factor of at most eight, are widened to that
 *            level: a part then needs one row instead of sixteen.
 */
#include <math.h>
#include <string.h>

#include "store/store_int.h"

#define COARSER_MOST 3 /* widens parts by at most this power of two */

typedef struct one {
    dt_store_curves curves; /* count 0: the run does not have the metric */
    int64_t begun_ms;       /* start of its first attempt; 0: it has none */
} one;

typedef struct banding {
    one *runs;
    int64_t runs_count;
    int shift;
    int64_t first, parts; /* range of buckets of the band */
    dt_pile *piles;       /* of the current run */
    dt_band *sums;        /* over all runs read so far; mean and seconds are sums */
} banding;

static dt_status begun_read(dt_store *store, int64_t *out, const char *run, dt_error *err)
{
    dt_sql_rows rows = {0};
    dt_status st;
    bool more;

    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err,
                       "SELECT coalesce(a.started_ms, a.created_ms) FROM attempts a"
                       " JOIN runs r USING (run) WHERE r.id = ?1 ORDER BY a.attempt LIMIT 1",
                       DT_TEXT(run)));
    DT_TRY(dt_sql_next(&rows, &more, err));
    *out = more ? dt_sql_int(&rows) : 0;
out:
    dt_sql_close(&rows);
    return st;
}

/* Finds the curve of each run, and the range of steps in which any of them has points. */
static dt_status runs_read(banding *b, dt_step_range *all, dt_store *store, const char *const *ids,
                           const char *name, dt_step_range wanted, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    *all = (dt_step_range){INT64_MAX, INT64_MIN};
    b->runs = dt_arena_alloc_array(arena, (size_t)b->runs_count + 1, sizeof(*b->runs));
    for (int64_t i = 0; i < b->runs_count; i++) {
        one *run = &b->runs[i];
        dt_step_range range = wanted;

        DT_TRY(begun_read(store, &run->begun_ms, ids[i], err));
        DT_TRY(dt_store_curves_find(store, &run->curves, ids[i], name, arena, err));
        if (run->curves.count == 0)
            continue;
        DT_TRY(dt_curve_range(store, &range, &run->curves, 0, arena, err));
        all->from = range.from < all->from ? range.from : all->from;
        all->to = range.to > all->to ? range.to : all->to;
    }
out:
    return st;
}

static int width_of(dt_step_range all, int64_t most)
{
    int shift = dt_parts_shift(all, most);

    for (int level = 1; level <= DT_PYRAMID_LEVELS; level++) {
        int coarser = dt_pyramid_shift(level);

        if (coarser >= shift && coarser <= shift + COARSER_MOST)
            return coarser;
    }
    return shift;
}

static void take_pile(void *context, const dt_pile *pile)
{
    const banding *b = context;

    dt_pile_merge(&b->piles[dt_step_bucket(pile->first_step, b->shift) - b->first], pile);
}

static void sum_up(dt_band *band, const dt_pile *pile, int64_t begun_ms)
{
    bool first = band->points == 0;

    if (pile->points == 0)
        return;
    band->first_step =
        first || pile->first_step < band->first_step ? pile->first_step : band->first_step;
    band->last_step =
        first || pile->last_step > band->last_step ? pile->last_step : band->last_step;
    band->points += pile->points;
    band->not_finite += pile->not_finite;
    if (pile->points == pile->not_finite)
        return;
    band->min = band->runs == 0 ? pile->low : fmin(band->min, pile->low);
    band->max = band->runs == 0 ? pile->high : fmax(band->max, pile->high);
    band->mean += dt_pile_mean(pile);
    band->seconds += (double)(pile->last_ms - begun_ms) / 1000;
    band->runs++;
}

static dt_status run_add(banding *b, dt_store *store, const one *run, dt_step_range all,
                         dt_error *err)
{
    dt_status st = DT_OK;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    memset(b->piles, 0, (size_t)b->parts * sizeof(*b->piles));
    if (run->curves.count > 0)
        DT_TRY(dt_curve_piles(store, &run->curves, 0, all, b->shift, take_pile, b, &arena, err));
    for (int64_t i = 0; i < b->parts; i++)
        sum_up(&b->sums[i], &b->piles[i], run->begun_ms);
out:
    dt_arena_release(&arena);
    return st;
}

/* Divides the sums to get means, and removes empty parts. Returns the number of parts left. */
static int64_t finish(dt_band *bands, int64_t count)
{
    int64_t kept = 0;

    for (int64_t i = 0; i < count; i++) {
        dt_band band = bands[i];

        if (band.points == 0)
            continue;
        band.mean = band.runs > 0 ? band.mean / (double)band.runs : NAN;
        band.seconds = band.runs > 0 ? band.seconds / (double)band.runs : NAN;
        if (band.runs == 0)
            band.min = band.max = NAN;
        else if (!isfinite(band.mean)) /* the sum exceeded the range of a double */
            band.mean = band.min / 2 + band.max / 2;
        bands[kept++] = band;
    }
    return kept;
}

dt_status dt_store_band(dt_store *store, dt_band **out, int64_t *count, const char *const *runs,
                        int64_t runs_count, const char *name, int64_t from, int64_t to,
                        int64_t most, dt_arena *arena, dt_error *err)
{
    banding b = {.runs_count = runs_count};
    dt_sql_group group = {0};
    dt_step_range all;
    dt_status st;

    *out = NULL;
    *count = 0;
    DT_TRY(dt_sql_group_begin_reading(&group, store, err)); /* one snapshot for all runs */
    DT_TRY(runs_read(&b, &all, store, runs, name, (dt_step_range){from, to}, arena, err));
    if (all.from > all.to)
        goto out;
    b.shift = width_of(all, most);
    b.first = dt_step_bucket(all.from, b.shift);
    b.parts = dt_step_bucket(all.to, b.shift) - b.first + 1;
    b.piles = dt_arena_alloc_array(arena, (size_t)b.parts, sizeof(*b.piles));
    b.sums = dt_arena_alloc_array(arena, (size_t)b.parts, sizeof(*b.sums));
    memset(b.sums, 0, (size_t)b.parts * sizeof(*b.sums));
    for (int64_t i = 0; i < runs_count; i++)
        DT_TRY(run_add(&b, store, &b.runs[i], all, err));
    *out = b.sums;
    *count = finish(b.sums, b.parts);
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_group_runs(dt_store *store, const char ***ids, int64_t *count, const char *group,
                              dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST(ids, count, &dt_sql_one_text, store, arena, err,
                       "SELECT id FROM runs WHERE run_group = ?1 AND run_group <> ''"
                       " ORDER BY created_ms, run",
                       DT_TEXT(group));
}
