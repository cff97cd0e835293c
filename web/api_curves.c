/* api_curves: streams curves for charts, as columns of buckets: of one run, of one metric of several runs, or as bands of
 * several runs. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/metric_kinds.h"
#include "web/web_int.h"

/* --- a run's curves, one per part */

#define BUCKETS_MOST 2000
#define NAMES_MOST   64 /* metrics that one request names */

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

static bool is_among(const char *name, const char *const *names, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Adds the curves of nodes, which a list of all curves lacks. */
static dt_status curves_of_nodes_add(bucket_stream *s, dt_web_request *request, const char *run,
                                     dt_error *err)
{
    dt_store_curves *all = &s->curves, of_nodes;
    dt_store_curve *both;
    dt_status st = DT_OK;

    DT_TRY(dt_store_curves_find(request->store, &of_nodes, run, DT_METRIC_SYSTEM, &s->found, err));
    both =
        dt_arena_alloc_array(&s->found, (size_t)(all->count + of_nodes.count) + 1, sizeof(*both));
    for (int64_t i = 0; i < all->count; i++)
        both[i] = all->curves[i];
    for (int64_t i = 0; i < of_nodes.count; i++)
        both[all->count + i] = of_nodes.curves[i];
    all->curves = both;
    all->count += of_nodes.count;
out:
    return st;
}

/* Finds the curves that the request names; without a name, all of the run. */
static dt_status curves_asked(bucket_stream *s, dt_web_request *request, const char *run,
                              dt_error *err)
{
    int64_t count, kept = 0;
    bool of_nodes = false;
    dt_status st = DT_OK;
    const char **names;

    DT_TRY(dt_web_arguments(&names, &count, request, "name", NAMES_MOST, &s->found, err));
    DT_TRY(dt_store_curves_find(request->store, &s->curves, run, count == 1 ? names[0] : NULL,
                                &s->found, err));
    if (count <= 1)
        goto out;
    for (int64_t i = 0; i < count; i++)
        of_nodes |= strncmp(names[i], DT_METRIC_SYSTEM, strlen(DT_METRIC_SYSTEM)) == 0;
    if (of_nodes)
        DT_TRY(curves_of_nodes_add(s, request, run, err));
    for (int64_t i = 0; i < s->curves.count; i++)
        if (is_among(s->curves.curves[i].name, names, count))
            s->curves.curves[kept++] = s->curves.curves[i];
    s->curves.count = kept;
out:
    return st;
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
    DT_TRY(curves_asked(s, request, run.id, err));
    s->head =
        json_pack("{so sI}", "run", dt_web_string_json(run.id), "attempt", (json_int_t)run.attempt);
out:
    return st;
}

/* --- one metric of several runs, one run per part */

#define CURVES_RUNS_MOST       100
#define CURVES_BUCKETS_DEFAULT 200

typedef struct run_stream {
    dt_arena found; /* ids of the runs, name of the metric */
    dt_arena arena; /* of the current run */
    const char **runs, *name;
    int64_t count, at, from, to, most;
    bool begun, any;
} run_stream;

static void add_text(dt_strbuf *out, const char *text)
{
    json_t *json = dt_web_string_json(text);

    dt_json_write(out, json);
    json_decref(json);
}

/* A run that was removed meanwhile, or that does not have the metric, has no curve. */
static dt_status run_curve_add(run_stream *s, dt_store *store, dt_strbuf *out, const char *run,
                               dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_store_curves curves;
    dt_status st = DT_OK;
    dt_bucket *buckets;
    int64_t count;

    dt_arena_reset(&s->arena);
    st = dt_store_curves_find(store, &curves, run, s->name, &s->arena, &problem);
    if (st == DT_ERR_NOT_FOUND || (st == DT_OK && curves.count == 0))
        return DT_OK;
    if (st != DT_OK)
        return DT_FAIL(err, st, "%s", problem.message);
    DT_TRY(dt_store_curve_buckets(store, &buckets, &count, &curves, 0, s->from, s->to, s->most,
                                  &s->arena, err));
    if (count == 0)
        goto out;
    dt_strbuf_add_str(out, s->any ? "," : "");
    add_curve(out, run, buckets, count);
    s->any = true;
out:
    return st;
}

static dt_status runs_next(void *state, dt_store *store, dt_strbuf *out, bool *more, dt_error *err)
{
    run_stream *s = state;
    dt_status st = DT_OK;

    if (!s->begun) {
        dt_strbuf_add_str(out, "{\"name\":");
        add_text(out, s->name);
        dt_strbuf_add_str(out, ",\"series\":{");
        s->begun = true;
    }
    while (s->at < s->count && out->length < DT_WEB_PART_BYTES)
        DT_TRY(run_curve_add(s, store, out, s->runs[s->at++], err));
    *more = s->at < s->count;
    if (!*more)
        dt_strbuf_add_fmt(out, "},\"api\":%d}\n", DT_WEB_API_VERSION);
out:
    return st;
}

static void runs_free(void *state)
{
    run_stream *s = state;

    dt_arena_release(&s->found);
    dt_arena_release(&s->arena);
    free(s);
}

dt_status dt_web_curves(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    const char *name = dt_web_argument(request, "name");
    run_stream *s = dt_calloc(1, sizeof(*s));
    dt_status st = DT_OK;

    dt_web_reply_stream(reply, runs_next, runs_free, s);
    dt_arena_init(&s->found, 0);
    dt_arena_init(&s->arena, 0);
    s->name = name != NULL ? dt_arena_strdup(&s->found, name) : dt_metric_name(DT_METRIC_LOSS);
    DT_TRY(dt_web_argument_int(&s->most, request, "buckets", CURVES_BUCKETS_DEFAULT, 1,
                               BUCKETS_MOST, err));
    DT_TRY(dt_web_argument_int(&s->from, request, "from", 0, 0, INT64_MAX, err));
    DT_TRY(dt_web_argument_int(&s->to, request, "to", INT64_MAX, 0, INT64_MAX, err));
    DT_TRY(dt_web_requested_runs(&s->runs, &s->count, request, &s->found, err));
    if (s->count > CURVES_RUNS_MOST)
        DT_THROW(err, DT_ERR_USAGE, "at most %d runs at once: name them with 'runs'",
                 CURVES_RUNS_MOST);
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

dt_status dt_web_metric_names(const char ***names, int64_t *count, dt_store *store,
                              const char *const *runs, int64_t runs_count, dt_arena *arena,
                              dt_error *err)
{
    int64_t capacity = 0, all = 0, kept = 0, more_count;
    const char **list = NULL, **more;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < runs_count; i++) {
        DT_TRY(dt_store_metric_names(store, &more, &more_count, runs[i], arena, err));
        list = dt_arena_array_room(arena, list, all + more_count, &capacity, sizeof(*list));
        for (int64_t j = 0; j < more_count; j++)
            list[all++] = more[j];
    }
    if (all > 0)
        qsort(list, (size_t)all, sizeof(*list), by_text);
    for (int64_t i = 0; i < all; i++)
        if (kept == 0 || strcmp(list[kept - 1], list[i]) != 0)
            list[kept++] = list[i];
    *names = list;
    *count = kept;
out:
    return st;
}

dt_status dt_web_band(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
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
    DT_TRY(
        dt_web_arguments(&s->names, &s->names_count, request, "name", NAMES_MOST, &s->found, err));
    if (s->names_count == 0)
        DT_TRY(dt_web_metric_names(&s->names, &s->names_count, request->store, s->runs,
                                   s->runs_count, &s->found, err));
out:
    return st;
}
