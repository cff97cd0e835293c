/* api_curves: streams a run's curves for a chart, as columns of buckets; one curve per part. */
#include <stdlib.h>

#include "web/request.h"
#include "web/run_json.h"

#include "base/alloc.h"

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

static const char *const names[COLUMN_COUNT] = {
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
        dt_strbuf_add_fmt(out, "%s\"%s\":[", which == 0 ? ":{" : ",", names[which]);
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
