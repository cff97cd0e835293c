/* curve: reads one metric of one run in buckets, and writes the points of runs as CSV with one line a step. */
#include "runner/view/compare/compare.h"

#include <math.h>
#include <string.h>

#include "base/display.h"
#include "base/metric_kinds.h"
#include "runner/term/term.h"

typedef struct reading {
    dt_curve *out;
    int64_t first_step, last_step, *counts;
} reading;

static bool take(void *context, const dt_metric *point)
{
    reading *all = context;
    dt_curve *out = all->out;
    const dt_curve_point here = {point->step, point->value};

    if (point->step < all->first_step)
        return true;
    out->count++;
    out->last = here;
    if (isnan(point->value))
        return true;
    if (!(out->lowest.value <= here.value))
        out->lowest = here;
    if (!(out->highest.value >= here.value))
        out->highest = here;
    if (out->buckets > 0) {
        double span = (double)(all->last_step - all->first_step) + 1;
        size_t at = (size_t)((double)(here.step - all->first_step) * (double)out->buckets / span);
        int64_t before = all->counts[at]++;

        out->means[at] =
            before == 0 ? here.value
                        : out->means[at] + (here.value - out->means[at]) / (double)(before + 1);
    }
    return true;
}

dt_status dt_curve_read(dt_curve *out, dt_store *store, const char *run, const char *name,
                        int64_t first_step, int64_t last_step, size_t buckets, dt_arena *arena,
                        dt_error *err)
{
    const dt_curve_point none = {-1, NAN};
    reading all = {out, first_step, last_step, NULL};
    dt_store_curves curves;
    dt_status st = DT_OK;

    *out = (dt_curve){.lowest = none, .highest = none, .last = none, .buckets = buckets};
    out->means = dt_arena_alloc_array(arena, buckets + 1, sizeof(out->means[0]));
    all.counts = dt_arena_alloc_array(arena, buckets + 1, sizeof(all.counts[0]));
    for (size_t i = 0; i < buckets; i++) {
        out->means[i] = NAN;
        all.counts[i] = 0;
    }
    DT_TRY(dt_store_curves_find(store, &curves, run, name, arena, err));
    if (curves.count == 1 && last_step >= first_step)
        DT_TRY(dt_store_curve_scan(store, &curves, 0, first_step - 1, last_step, take, &all, err));
out:
    return st;
}

static void widen(dt_curve *out, const dt_bucket *bucket)
{
    if (!(out->lowest.value <= bucket->min))
        out->lowest.value = bucket->min;
    if (!(out->highest.value >= bucket->max))
        out->highest.value = bucket->max;
    if (bucket->points > 0)
        out->last = (dt_curve_point){bucket->last_step, bucket->last};
    out->count += bucket->points;
}

/* Distributes the store's buckets over the curve's: each goes where its middle is. */
static void share_out(dt_curve *out, int64_t *counts, const dt_bucket *from, int64_t count)
{
    double span = (double)(out->last_step - out->first_step) + 1;

    for (int64_t i = 0; i < count; i++) {
        double middle = ((double)from[i].first_step + (double)from[i].last_step) / 2;
        size_t at = (size_t)((middle - (double)out->first_step) * (double)out->buckets / span);
        int64_t points = from[i].points - from[i].not_finite, all;

        if (points == 0)
            continue;
        all = counts[at] += points;
        out->means[at] = all == points ? from[i].mean
                                       : out->means[at] + (from[i].mean - out->means[at]) *
                                                              (double)points / (double)all;
    }
}

dt_status dt_curve_sketch(dt_curve *out, dt_store *store, const char *run, const char *name,
                          size_t most, dt_arena *arena, dt_error *err)
{
    const dt_curve_point none = {-1, NAN};
    int64_t count = 0, *counts;
    dt_store_curves curves;
    dt_bucket *buckets = NULL;
    dt_status st = DT_OK;

    *out = (dt_curve){.lowest = none, .highest = none, .last = none};
    DT_TRY(dt_store_curves_find(store, &curves, run, name, arena, err));
    if (curves.count == 1) /* twice as many, because the bounds of the buckets differ */
        DT_TRY(dt_store_curve_buckets(store, &buckets, &count, &curves, 0, INT64_MIN, INT64_MAX,
                                      2 * (int64_t)most, arena, err));
    for (int64_t i = 0; i < count; i++)
        widen(out, &buckets[i]);
    out->buckets = out->count < (int64_t)most ? (size_t)out->count : most;
    out->means = dt_arena_alloc_array(arena, out->buckets + 1, sizeof(out->means[0]));
    counts = dt_arena_alloc_array(arena, out->buckets + 1, sizeof(counts[0]));
    for (size_t i = 0; i < out->buckets; i++) {
        out->means[i] = NAN;
        counts[i] = 0;
    }
    if (count == 0)
        goto out;
    out->first_step = buckets[0].first_step;
    out->last_step = buckets[count - 1].last_step;
    share_out(out, counts, buckets, count);
out:
    return st;
}

static bool take_first(void *context, const dt_metric *point)
{
    *(int64_t *)context = point->step;
    return false;
}

dt_status dt_curve_extent(bool *there, int64_t *first_step, int64_t *last_step, dt_store *store,
                          const char *run, const char *name, dt_arena *arena, dt_error *err)
{
    dt_store_curves curves;
    dt_status st = DT_OK;
    dt_metric_end end;

    *there = false;
    DT_TRY(dt_store_metric_end(store, &end, run, name, DT_METRIC_LAST, err));
    if (!end.there)
        goto out;
    DT_TRY(dt_store_curves_find(store, &curves, run, name, arena, err));
    *there = curves.count == 1;
    *first_step = *last_step = end.step;
    if (*there)
        DT_TRY(dt_store_curve_scan(store, &curves, 0, -1, end.step, take_first, first_step, err));
out:
    return st;
}

void dt_curve_add_spark(dt_strbuf *out, const dt_term *term, const dt_curve *curve, size_t columns)
{
    size_t count = curve->buckets;
    double values[DT_CURVE_SPARK_MOST];

    for (size_t i = 0; i < columns && count > columns; i++)
        values[i] = curve->means[columns > 1 ? (i * (count - 1)) / (columns - 1) : count - 1];
    dt_plot_spark(out, term, count > columns ? values : curve->means,
                  count > columns ? columns : count);
}

const dt_curve_point *dt_curve_best(const dt_curve *curve, const char *name)
{
    return dt_metric_more_is_better(name) ? &curve->highest : &curve->lowest;
}

enum { COLUMNS_MOST = 1024 };

typedef struct columns {
    const char **names;
    size_t count;
} columns;

static size_t find_name(const columns *all, const char *name)
{
    size_t i = 0;

    while (i < all->count && strcmp(all->names[i], name) != 0)
        i++;
    return i;
}

static dt_status find_columns(columns *out, const dt_run_points *runs, size_t count,
                              dt_arena *arena, dt_error *err)
{
    out->names = dt_arena_alloc_array(arena, COLUMNS_MOST, sizeof(out->names[0]));
    out->count = 0;
    for (size_t r = 0; r < count; r++)
        for (int64_t i = 0; i < runs[r].count; i++) {
            const char *name = runs[r].points[i].name;

            if (i > 0 && strcmp(runs[r].points[i - 1].name, name) == 0)
                continue;
            if (find_name(out, name) < out->count)
                continue;
            if (out->count == COLUMNS_MOST)
                return DT_FAIL(err, DT_ERR_USAGE, "more than %d metrics", COLUMNS_MOST);
            out->names[out->count++] = name;
        }
    return DT_OK;
}

/* Merges the points of the metrics, which are each ordered by step. */
static void add_run(dt_strbuf *out, const dt_run_points *run, const columns *all,
                    const dt_metric **next, const dt_metric **end, bool named)
{
    char value[DT_FORMAT_SIZE];

    for (int64_t i = 0; i < run->count; i++) {
        size_t at = find_name(all, run->points[i].name);

        if (next[at] == NULL)
            next[at] = &run->points[i];
        end[at] = &run->points[i] + 1;
    }
    for (;;) {
        int64_t step = INT64_MAX;

        for (size_t c = 0; c < all->count; c++)
            if (next[c] != end[c] && next[c]->step < step)
                step = next[c]->step;
        if (step == INT64_MAX)
            break;
        if (named)
            dt_strbuf_add_fmt(out, "%s,", run->run);
        dt_strbuf_add_fmt(out, "%lld", (long long)step);
        for (size_t c = 0; c < all->count; c++) {
            dt_strbuf_add_char(out, ',');
            if (next[c] == end[c] || next[c]->step != step)
                continue;
            dt_strbuf_add_str(out, dt_format_exact(value, sizeof(value), next[c]->value));
            next[c]++;
        }
        dt_strbuf_add_char(out, '\n');
    }
}

dt_status dt_wide_add(dt_strbuf *out, const dt_run_points *runs, size_t count, dt_arena *arena,
                      dt_error *err)
{
    const dt_metric **next, **end;
    dt_status st = DT_OK;
    columns all;

    DT_TRY(find_columns(&all, runs, count, arena, err));
    next = dt_arena_alloc_array(arena, all.count + 1, sizeof(next[0]));
    end = dt_arena_alloc_array(arena, all.count + 1, sizeof(end[0]));
    dt_strbuf_add_fmt(out, "%sstep", count > 1 ? "run," : "");
    for (size_t c = 0; c < all.count; c++) {
        dt_strbuf_add_char(out, ',');
        dt_csv_add_text(out, all.names[c]);
    }
    dt_strbuf_add_char(out, '\n');
    for (size_t r = 0; r < count; r++) {
        for (size_t c = 0; c < all.count; c++)
            next[c] = end[c] = NULL;
        add_run(out, &runs[r], &all, next, end, count > 1);
    }
out:
    return st;
}
