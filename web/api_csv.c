/* api_csv: streams the points of runs as a CSV file, as written by `dtrun export --to csv`, block by block. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/csv.h"
#include "web/request.h"
#include "web/requested_runs.h"

#define BLOCK_POINTS 512

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
    dt_metric points[BLOCK_POINTS];
    int64_t count;
} csv_stream;

static void add_point(dt_strbuf *out, const csv_stream *s, const dt_metric *point)
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
    return s->count < BLOCK_POINTS;
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
        add_point(out, s, &s->points[i]);
    if (s->count == BLOCK_POINTS) {
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
