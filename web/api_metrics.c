/* api_metrics: serves the points of curves, as JSON and as CSV.
 *
 * The answer is a stream: a curve may have a million points, of which at most `most` are shown. The points are counted
 * first, then each column is written block by block. If one block holds all shown points it is read once, else the
 * curve is read again for each column. No handle of the store is held between two parts; a checksum of the steps
 * verifies that all columns have the same points.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/display.h"
#include "base/memory.h"
#include "web/web_int.h"

#define POINTS_DEFAULT 1000
#define POINTS_MOST    100000
#define BLOCK_POINTS   1024

enum { COLUMNS = 3 }; /* step, value, time_ms */

typedef struct block {
    dt_metric points[BLOCK_POINTS];
    int64_t count;
} block;

typedef struct metrics {
    dt_arena arena;
    dt_store_curves curves;
    json_t *head; /* {"run", "attempt"} */
    int64_t after, most;
    int64_t at;     /* index of the current curve */
    bool begun;     /* the answer has been started */
    bool any_curve; /* a curve has been written */
    /* the current curve: */
    bool open, whole; /* whole: one block holds all shown points */
    int64_t count, shown, last_step;
    /* the current column: */
    int column;
    int64_t written;      /* shown points written so far */
    int64_t passed, from; /* points read so far, and the step of the last of them */
    uint64_t sum, first_sum;
    block block;
} metrics;

/* Returns the index, among `count` points, of point i of `shown`: evenly spaced, with the first and the last. */
static int64_t pick(int64_t i, int64_t count, int64_t shown)
{
    if (shown == count)
        return i;
    if (shown == 1)
        return count - 1;
    return (int64_t)((double)i * (double)(count - 1) / (double)(shown - 1) + 0.5);
}

static bool pick_point(void *context, const dt_metric *point)
{
    metrics *m = context;
    int64_t next = m->written + m->block.count; /* number of the shown point that is searched */

    m->from = point->step;
    if (m->passed++ == pick(next, m->count, m->shown))
        m->block.points[m->block.count++] = *point;
    return m->block.count < BLOCK_POINTS && m->written + m->block.count < m->shown;
}

static dt_status block_read(metrics *m, dt_store *store, dt_error *err)
{
    m->block.count = 0;
    return dt_store_curve_scan(store, &m->curves, m->at, m->from, m->last_step, pick_point, m, err);
}

static void column_begin(metrics *m)
{
    m->written = m->passed = 0;
    m->from = m->after;
    m->sum = 0;
}

/* Counts the points of a curve. A curve without new points is not opened. */
static dt_status curve_begin(metrics *m, dt_store *store, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_store_curve_count(store, &m->curves, m->at, m->after, &m->count, &m->last_step, err));
    m->open = m->count > 0;
    if (!m->open)
        goto out;
    m->shown = m->count < m->most ? m->count : m->most;
    m->whole = m->shown <= BLOCK_POINTS;
    m->column = 0;
    column_begin(m);
    if (m->whole) { /* fewer are shown if points were removed since the count */
        DT_TRY(block_read(m, store, err));
        m->shown = m->block.count;
        m->open = m->shown > 0;
    }
out:
    return st;
}

static void add_point(dt_strbuf *out, int column, const dt_metric *point)
{
    if (column == 1)
        dt_web_add_real(out, point->value);
    else
        dt_strbuf_add_fmt(out, "%lld", (long long)(column == 0 ? point->step : point->time_ms));
}

static void block_write(metrics *m, dt_strbuf *out)
{
    for (int64_t i = 0; i < m->block.count; i++) {
        if (m->written > 0)
            dt_strbuf_add_char(out, ',');
        add_point(out, m->column, &m->block.points[i]);
        m->sum = (m->sum ^ (uint64_t)m->block.points[i].step) * 1099511628211u;
        m->written++;
    }
}

static void column_head(metrics *m, dt_strbuf *out)
{
    static const char *const names[COLUMNS] = {"step", "value", "time_ms"};
    json_t *name;

    if (m->column == 0) {
        name = dt_web_string_json(m->curves.curves[m->at].name);
        dt_strbuf_add_str(out, m->any_curve ? "," : "");
        dt_json_write(out, name);
        dt_strbuf_add_str(out, ":{");
        json_decref(name);
        m->any_curve = true;
    }
    dt_strbuf_add_fmt(out, "%s\"%s\":[", m->column > 0 ? "," : "", names[m->column]);
}

static dt_status column_end(metrics *m, dt_strbuf *out, dt_error *err)
{
    if (m->column == 0)
        m->first_sum = m->sum;
    if (m->sum != m->first_sum)
        return DT_FAIL(err, DT_ERR_BUSY, "the run's metrics have changed meanwhile");
    dt_strbuf_add_char(out, ']');
    column_begin(m);
    if (++m->column == COLUMNS) {
        dt_strbuf_add_char(out, '}');
        m->open = false;
        m->at++;
    }
    return DT_OK;
}

/* Writes the next block of the open column. */
static dt_status column_go_on(metrics *m, dt_store *store, dt_strbuf *out, dt_error *err)
{
    dt_status st = DT_OK;

    if (m->written == 0)
        column_head(m, out);
    if (!m->whole)
        DT_TRY(block_read(m, store, err));
    if (m->block.count == 0)
        DT_THROW(err, DT_ERR_BUSY, "the run's metrics have been removed meanwhile");
    block_write(m, out);
    if (m->written == m->shown)
        DT_TRY(column_end(m, out, err));
out:
    return st;
}

static void begin(metrics *m, dt_strbuf *out)
{
    dt_json_write(out, m->head);
    out->data[--out->length] = '\0'; /* drops the closing brace: more fields follow */
    dt_strbuf_add_str(out, ",\"series\":{");
    m->begun = true;
}

static dt_status metrics_next(void *state, dt_store *store, dt_strbuf *out, bool *more,
                              dt_error *err)
{
    dt_status st = DT_OK;
    metrics *m = state;

    if (!m->begun)
        begin(m, out);
    while (m->at < m->curves.count && out->length < DT_WEB_PART_BYTES) {
        if (m->open) {
            DT_TRY(column_go_on(m, store, out, err));
        } else {
            DT_TRY(curve_begin(m, store, err));
            m->at += !m->open;
        }
    }
    *more = m->at < m->curves.count;
    if (!*more)
        dt_strbuf_add_fmt(out, "},\"api\":%d}\n", DT_WEB_API_VERSION);
out:
    return st;
}

static void metrics_free(void *state)
{
    metrics *m = state;

    json_decref(m->head);
    dt_arena_release(&m->arena);
    free(m);
}

dt_status dt_web_metrics(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    metrics *m;
    dt_status st = DT_OK;
    dt_run run;

    if (dt_web_argument(request, "buckets") != NULL)
        return dt_web_buckets(request, reply, err);
    m = dt_calloc(1, sizeof(*m));
    dt_web_reply_stream(reply, metrics_next, metrics_free, m);
    dt_arena_init(&m->arena, 1024);
    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&m->after, request, "after", -1, -1, INT64_MAX, err));
    DT_TRY(dt_web_argument_int(&m->most, request, "most", POINTS_DEFAULT, 1, POINTS_MOST, err));
    DT_TRY(dt_store_curves_find(request->store, &m->curves, run.id,
                                dt_web_argument(request, "name"), &m->arena, err));
    m->head =
        json_pack("{so sI}", "run", dt_web_string_json(run.id), "attempt", (json_int_t)run.attempt);
out:
    return st;
}

/* api_csv: streams the points of runs as a CSV file, as written by `dtrun export --to csv`, block by block. */

#define CSV_BLOCK_POINTS 512

typedef struct csv_stream {
    dt_arena found; /* ids of the runs */
    dt_arena arena; /* of the current run */
    const char **runs;
    int64_t runs_count, at;
    char *name;       /* of the metric; NULL: all metrics */
    int64_t from, to; /* range of steps */
    bool begun, open; /* begun: the header was written; open: the current run's curves are loaded */
    const char *title; /* the current run's name */
    dt_store_curves curves;
    int64_t curve, after; /* index of the next curve, and the last step of it that was written */
    dt_metric points[CSV_BLOCK_POINTS];
    int64_t count;
} csv_stream;

static void csv_add_point(dt_strbuf *out, const csv_stream *s, const dt_metric *point)
{
    char time[DT_CLOCK_ISO_SIZE], value[40];

    if (isnan(point->value))
        snprintf(value, sizeof(value), "nan"); /* never "-nan" */
    else
        snprintf(value, sizeof(value), "%.17g", point->value);
    dt_csv_add_text(out, s->runs[s->at]);
    dt_strbuf_add_char(out, ',');
    dt_csv_add_text(out, s->title);
    dt_strbuf_add_fmt(out, ",%lld,%lld,", (long long)point->attempt, (long long)point->step);
    dt_csv_add_text(out, point->name);
    dt_strbuf_add_fmt(out, ",%s,%s\n", value, dt_clock_iso(time, point->time_ms));
}

static bool gather(void *context, const dt_metric *point)
{
    csv_stream *s = context;

    s->points[s->count++] = *point;
    return s->count < CSV_BLOCK_POINTS;
}

/* Opens the next run. A run that was removed meanwhile has no points. */
static dt_status run_open(csv_stream *s, dt_store *store, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st;
    dt_run run;

    dt_arena_reset(&s->arena);
    memset(&s->curves, 0, sizeof(s->curves));
    s->curve = 0;
    s->after = s->from - 1;
    s->open = true;
    st = dt_store_run_find(store, &run, s->runs[s->at], &s->arena, &problem);
    if (st == DT_ERR_NOT_FOUND)
        return DT_OK;
    if (st != DT_OK)
        return DT_FAIL(err, st, "%s", problem.message);
    s->title = run.name;
    return dt_store_curves_find(store, &s->curves, run.id, s->name, &s->arena, err);
}

/* Writes the next block of points of the open run, or opens the next run. */
static dt_status write_more(csv_stream *s, dt_store *store, dt_strbuf *out, dt_error *err)
{
    dt_status st;

    if (s->curve == s->curves.count) {
        s->open = false;
        s->at++;
        return DT_OK;
    }
    s->count = 0;
    st = dt_store_curve_scan(store, &s->curves, s->curve, s->after, s->to, gather, s, err);
    if (st != DT_OK)
        return st;
    for (int64_t i = 0; i < s->count; i++)
        csv_add_point(out, s, &s->points[i]);
    if (s->count == CSV_BLOCK_POINTS) {
        s->after = s->points[s->count - 1].step;
    } else {
        s->after = s->from - 1;
        s->curve++;
    }
    return DT_OK;
}

static dt_status csv_next(void *state, dt_store *store, dt_strbuf *out, bool *more, dt_error *err)
{
    dt_status st = DT_OK;
    csv_stream *s = state;

    if (!s->begun)
        dt_strbuf_add_str(out, "run,run_name,attempt,step,name,value,time\n");
    s->begun = true;
    while (s->at < s->runs_count && out->length < DT_WEB_PART_BYTES)
        DT_TRY(s->open ? write_more(s, store, out, err) : run_open(s, store, err));
    *more = s->at < s->runs_count;
out:
    return st;
}

static void csv_free(void *state)
{
    csv_stream *s = state;

    free(s->name);
    dt_arena_release(&s->found);
    dt_arena_release(&s->arena);
    free(s);
}

dt_status dt_web_csv(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    const char *name = dt_web_argument(request, "name");
    csv_stream *s = dt_calloc(1, sizeof(*s));
    dt_status st = DT_OK;

    dt_web_reply_stream(reply, csv_next, csv_free, s);
    dt_arena_init(&s->found, 0);
    dt_arena_init(&s->arena, 0);
    DT_TRY(dt_web_argument_int(&s->from, request, "from", 0, 0, INT64_MAX, err));
    DT_TRY(dt_web_argument_int(&s->to, request, "to", INT64_MAX, 0, INT64_MAX, err));
    DT_TRY(dt_web_requested_runs(&s->runs, &s->runs_count, request, &s->found, err));
    s->name = name != NULL ? dt_strdup(name) : NULL;
    reply->type = "text/csv; charset=utf-8";
    reply->file_name = "dtrun.csv";
out:
    return st;
}
