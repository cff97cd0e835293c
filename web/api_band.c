/* api_band: streams metrics of several runs as bands, in columns; one metric per part. */
#include <stdlib.h>
#include <string.h>

#include "web/request.h"
#include "web/requested_runs.h"
#include "web/run_json.h"

#include "base/alloc.h"

#define BUCKETS_DEFAULT 1000
#define BUCKETS_MOST    2000

typedef struct band_stream {
    dt_arena found; /* ids of the runs, names of the metrics */
    dt_arena arena; /* of the current metric */
    const char **runs, **names;
    int64_t runs_count, names_count, at;
    int64_t from, to, most;
    bool begun, any;
} band_stream;

typedef enum column {
    FIRST_STEP,
    LAST_STEP,
    RUNS,
    POINTS,
    NOT_FINITE,
    LOWEST,
    HIGHEST,
    MEAN,
    SECONDS,
    COLUMN_COUNT
} column;

static const char *const columns[COLUMN_COUNT] = {
    [FIRST_STEP] = "first_step", [LAST_STEP] = "last_step", [RUNS] = "runs",   [POINTS] = "points",
    [NOT_FINITE] = "not_finite", [LOWEST] = "min",          [HIGHEST] = "max", [MEAN] = "mean",
    [SECONDS] = "seconds"};

static void add_cell(dt_strbuf *out, const dt_band *b, column which)
{
    const int64_t numbers[] = {[FIRST_STEP] = b->first_step,
                               [LAST_STEP] = b->last_step,
                               [RUNS] = b->runs,
                               [POINTS] = b->points,
                               [NOT_FINITE] = b->not_finite};
    const double values[] = {
        [LOWEST] = b->min, [HIGHEST] = b->max, [MEAN] = b->mean, [SECONDS] = b->seconds};

    if (which <= NOT_FINITE)
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
    for (column which = 0; which < COLUMN_COUNT; which++) {
        dt_strbuf_add_fmt(out, "%s\"%s\":[", which == 0 ? ":{" : ",", columns[which]);
        for (int64_t i = 0; i < count; i++) {
            dt_strbuf_add_str(out, i > 0 ? "," : "");
            add_cell(out, &bands[i], which);
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
    const char **names, **more;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < s->runs_count; i++) {
        DT_TRY(dt_store_metric_names(request->store, &more, &count, s->runs[i], &s->found, err));
        if (s->names_count + count > capacity) {
            capacity = (s->names_count + count) * 2;
            names = dt_arena_alloc_array(&s->found, (size_t)capacity, sizeof(*names));
            if (s->names_count > 0)
                memcpy(names, s->names, (size_t)s->names_count * sizeof(*names));
            s->names = names;
        }
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
    DT_TRY(
        dt_web_argument_int(&s->most, request, "buckets", BUCKETS_DEFAULT, 1, BUCKETS_MOST, err));
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
