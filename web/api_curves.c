/* api_curves: streams curves for charts, as columns of buckets: of one run, or as bands of several. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "web/web_int.h"

/* --- a run's curves, one per part */

#define BUCKETS_MOST 2000

typedef struct bucket_stream {
    dt_arena found; /* the list of curves */
    dt_arena arena; /* of the current curve */
    dt_store_curves curves;
    json_t *head; /* {"run", "attempt"} */
    int64_t from, to, most, at;
    bool begun, any_curve;
} bucket_stream;

typedef enum column {
    FIRST_STEP,
    LAST_STEP,
    TIME_MS,
    POINTS,
    NOT_FINITE,
    LOWEST,
    HIGHEST,
    MEAN,
    LAST,
    COLUMN_COUNT
} column;

static const char *const column_names[COLUMN_COUNT] = {
    [FIRST_STEP] = "first_step",
    [LAST_STEP] = "last_step",
    [TIME_MS] = "time_ms",
    [POINTS] = "points",
    [NOT_FINITE] = "not_finite",
    [LOWEST] = "min",
    [HIGHEST] = "max",
    [MEAN] = "mean",
    [LAST] = "last",
};

static void add_cell(dt_strbuf *out, const dt_bucket *b, column which)
{
    const int64_t numbers[] = {[FIRST_STEP] = b->first_step,
                               [LAST_STEP] = b->last_step,
                               [TIME_MS] = b->last_ms,
                               [POINTS] = b->points,
                               [NOT_FINITE] = b->not_finite};
    const double values[] = {
        [LOWEST] = b->min, [HIGHEST] = b->max, [MEAN] = b->mean, [LAST] = b->last};

    if (which <= NOT_FINITE)
        dt_strbuf_add_fmt(out, "%lld", (long long)numbers[which]);
    else
        dt_web_add_real(out, values[which]);
}

static void add_curve(dt_strbuf *out, const char *name, const dt_bucket *buckets, int64_t count)
{
    json_t *text = dt_web_string_json(name);

    dt_json_write(out, text);
    json_decref(text);
    for (column which = 0; which < COLUMN_COUNT; which++) {
        dt_strbuf_add_fmt(out, "%s\"%s\":[", which == 0 ? ":{" : ",", column_names[which]);
        for (int64_t i = 0; i < count; i++) {
            dt_strbuf_add_str(out, i > 0 ? "," : "");
            add_cell(out, &buckets[i], which);
        }
        dt_strbuf_add_char(out, ']');
    }
    dt_strbuf_add_char(out, '}');
}

static dt_status buckets_next(void *state, dt_store *store, dt_strbuf *out, bool *more,
                              dt_error *err)
{
    bucket_stream *s = state;
    dt_status st = DT_OK;

    if (!s->begun) {
        dt_json_write(out, s->head);
        out->data[--out->length] = '\0'; /* drops the closing brace: more fields follow */
        dt_strbuf_add_str(out, ",\"series\":{");
        s->begun = true;
    }
    for (; s->at < s->curves.count && out->length < DT_WEB_PART_BYTES; s->at++) {
        dt_bucket *buckets;
        int64_t count;

        dt_arena_reset(&s->arena);
        DT_TRY(dt_store_curve_buckets(store, &buckets, &count, &s->curves, s->at, s->from, s->to,
                                      s->most, &s->arena, err));
        if (count == 0)
            continue;
        dt_strbuf_add_str(out, s->any_curve ? "," : "");
        add_curve(out, s->curves.curves[s->at].name, buckets, count);
        s->any_curve = true;
    }
    *more = s->at < s->curves.count;
    if (!*more)
        dt_strbuf_add_fmt(out, "},\"api\":%d}\n", DT_WEB_API_VERSION);
out:
    return st;
}

static void buckets_free(void *state)
{
    bucket_stream *s = state;

    json_decref(s->head);
    dt_arena_release(&s->found);
    dt_arena_release(&s->arena);
    free(s);
}

dt_status dt_web_buckets(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    bucket_stream *s = dt_calloc(1, sizeof(*s));
    dt_status st = DT_OK;
    dt_run run;

    dt_web_reply_stream(reply, buckets_next, buckets_free, s);
    dt_arena_init(&s->found, 1024);
    dt_arena_init(&s->arena, 0);
    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&s->most, request, "buckets", 1, 1, BUCKETS_MOST, err));
    DT_TRY(dt_web_argument_int(&s->from, request, "from", 0, 0, INT64_MAX, err));
    DT_TRY(dt_web_argument_int(&s->to, request, "to", INT64_MAX, 0, INT64_MAX, err));
    DT_TRY(dt_store_curves_find(request->store, &s->curves, run.id,
                                dt_web_argument(request, "name"), &s->found, err));
    s->head =
        json_pack("{so sI}", "run", dt_web_string_json(run.id), "attempt", (json_int_t)run.attempt);
out:
    return st;
}

/* --- metrics of several runs as bands, one metric per part */

#define BAND_BUCKETS_DEFAULT 1000
#define BAND_BUCKETS_MOST    2000

typedef struct band_stream {
    dt_arena found; /* ids of the runs, names of the metrics */
    dt_arena arena; /* of the current metric */
    const char **runs, **names;
    int64_t runs_count, names_count, at;
    int64_t from, to, most;
    bool begun, any;
} band_stream;

typedef enum band_column {
    BAND_FIRST_STEP,
    BAND_LAST_STEP,
    BAND_RUNS,
    BAND_POINTS,
    BAND_NOT_FINITE,
    BAND_LOWEST,
    BAND_HIGHEST,
    BAND_MEAN,
    BAND_SECONDS,
    BAND_COLUMN_COUNT
} band_column;

static const char *const band_columns[BAND_COLUMN_COUNT] = {[BAND_FIRST_STEP] = "first_step",
                                                            [BAND_LAST_STEP] = "last_step",
                                                            [BAND_RUNS] = "runs",
                                                            [BAND_POINTS] = "points",
                                                            [BAND_NOT_FINITE] = "not_finite",
                                                            [BAND_LOWEST] = "min",
                                                            [BAND_HIGHEST] = "max",
                                                            [BAND_MEAN] = "mean",
                                                            [BAND_SECONDS] = "seconds"};

static void add_band_cell(dt_strbuf *out, const dt_band *b, band_column which)
{
    const int64_t numbers[] = {[BAND_FIRST_STEP] = b->first_step,
                               [BAND_LAST_STEP] = b->last_step,
                               [BAND_RUNS] = b->runs,
                               [BAND_POINTS] = b->points,
                               [BAND_NOT_FINITE] = b->not_finite};
    const double values[] = {[BAND_LOWEST] = b->min,
                             [BAND_HIGHEST] = b->max,
                             [BAND_MEAN] = b->mean,
                             [BAND_SECONDS] = b->seconds};

    if (which <= BAND_NOT_FINITE)
        dt_strbuf_add_fmt(out, "%lld", (long long)numbers[which]);
    else
        dt_web_add_real(out, values[which]);
}

static void add_text(dt_strbuf *out, const char *text)
{
    json_t *json = dt_web_string_json(text);

    dt_json_write(out, json);
    json_decref(json);
}

static void add_band(dt_strbuf *out, const char *name, const dt_band *bands, int64_t count)
{
    add_text(out, name);
    for (band_column which = 0; which < BAND_COLUMN_COUNT; which++) {
        dt_strbuf_add_fmt(out, "%s\"%s\":[", which == 0 ? ":{" : ",", band_columns[which]);
        for (int64_t i = 0; i < count; i++) {
            dt_strbuf_add_str(out, i > 0 ? "," : "");
            add_band_cell(out, &bands[i], which);
        }
        dt_strbuf_add_char(out, ']');
    }
    dt_strbuf_add_char(out, '}');
}

static void begin(band_stream *s, dt_strbuf *out)
{
    dt_strbuf_add_str(out, "{\"runs\":[");
    for (int64_t i = 0; i < s->runs_count; i++) {
        dt_strbuf_add_str(out, i > 0 ? "," : "");
        add_text(out, s->runs[i]);
    }
    dt_strbuf_add_str(out, "],\"series\":{");
    s->begun = true;
}

static dt_status band_next(void *state, dt_store *store, dt_strbuf *out, bool *more, dt_error *err)
{
    band_stream *s = state;
    dt_status st = DT_OK;

    if (!s->begun)
        begin(s, out);
    for (; s->at < s->names_count && out->length < DT_WEB_PART_BYTES; s->at++) {
        dt_band *bands;
        int64_t count;

        dt_arena_reset(&s->arena);
        DT_TRY(dt_store_band(store, &bands, &count, s->runs, s->runs_count, s->names[s->at],
                             s->from, s->to, s->most, &s->arena, err));
        if (count == 0)
            continue;
        dt_strbuf_add_str(out, s->any ? "," : "");
        add_band(out, s->names[s->at], bands, count);
        s->any = true;
    }
    *more = s->at < s->names_count;
    if (!*more)
        dt_strbuf_add_fmt(out, "},\"api\":%d}\n", DT_WEB_API_VERSION);
out:
    return st;
}

static void band_free(void *state)
{
    band_stream *s = state;

    dt_arena_release(&s->found);
    dt_arena_release(&s->arena);
    free(s);
}

/* --- metric names */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Finds the names of the metrics of all runs: sorted, each once. */
static dt_status names_find(band_stream *s, dt_web_request *request, dt_error *err)
{
    int64_t capacity = 0, kept = 0, count;
    const char **more;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < s->runs_count; i++) {
        DT_TRY(dt_store_metric_names(request->store, &more, &count, s->runs[i], &s->found, err));
        s->names = dt_arena_array_room(&s->found, s->names, s->names_count + count, &capacity,
                                       sizeof(*s->names));
        for (int64_t j = 0; j < count; j++)
            s->names[s->names_count++] = more[j];
    }
    if (s->names_count > 0)
        qsort(s->names, (size_t)s->names_count, sizeof(*s->names), by_text);
    for (int64_t i = 0; i < s->names_count; i++)
        if (kept == 0 || strcmp(s->names[kept - 1], s->names[i]) != 0)
            s->names[kept++] = s->names[i];
    s->names_count = kept;
out:
    return st;
}

static void name_given(band_stream *s, const char *name)
{
    s->names = dt_arena_alloc_array(&s->found, 1, sizeof(*s->names));
    s->names[0] = dt_arena_strdup(&s->found, name);
    s->names_count = 1;
}

dt_status dt_web_band(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    const char *name = dt_web_argument(request, "name");
    band_stream *s = dt_calloc(1, sizeof(*s));
    dt_status st = DT_OK;

    dt_web_reply_stream(reply, band_next, band_free, s);
    dt_arena_init(&s->found, 0);
    dt_arena_init(&s->arena, 0);
    DT_TRY(dt_web_argument_int(&s->most, request, "buckets", BAND_BUCKETS_DEFAULT, 1,
                               BAND_BUCKETS_MOST, err));
    DT_TRY(dt_web_argument_int(&s->from, request, "from", 0, 0, INT64_MAX, err));
    DT_TRY(dt_web_argument_int(&s->to, request, "to", INT64_MAX, 0, INT64_MAX, err));
    DT_TRY(dt_web_requested_runs(&s->runs, &s->runs_count, request, &s->found, err));
    if (name != NULL)
        name_given(s, name);
    else
        DT_TRY(names_find(s, request, err));
out:
    return st;
}
