#include "web/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "web/web_int.h"

#define BUCKETS      "1000"
#define BUCKETS_FEW  "250" /* for runs with many metrics */
#define METRICS_MANY 24
#define LOG_LINES    "400"
#define SAMPLE_STEPS "100" /* number of steps whose samples and confusion are included */
#define RANKS_MOST   16    /* number of ranks whose logs are included */

/* Appends JSON for use in a script element, with every '<' escaped: no text can end the script or start a comment. */
static void add_json(dt_strbuf *out, const char *json, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (json[i] == '<')
            dt_strbuf_add_str(out, "\\u003c");
        else
            dt_strbuf_add_char(out, json[i]);
    }
}

static dt_status add_stream(dt_strbuf *out, dt_web_stream *stream, dt_store *store, dt_error *err)
{
    dt_status st = DT_OK;
    bool more = true;
    dt_strbuf part;

    dt_strbuf_init(&part);
    while (more) {
        dt_strbuf_reset(&part);
        DT_TRY(stream->next(stream->state, store, &part, &more, err));
        add_json(out, part.data, part.length);
    }
out:
    dt_strbuf_release(&part);
    return st;
}

/* Appends `"KEY":ANSWER` with the answer that the server would give for the path. */
static dt_status add_answer(dt_strbuf *out, const dt_web_report *report, const char *path,
                            const char *const *arguments, const char *key, dt_error *err)
{
    dt_web_request request = {.store = report->store,
                              .folder = report->folder,
                              .now_ms = report->now_ms,
                              .arguments = arguments};
    dt_web_reply reply = {0};
    json_t *name = json_string(key);
    dt_status st = DT_OK;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    request.arena = &arena;
    if (out->data[out->length - 1] != '{')
        dt_strbuf_add_char(out, ',');
    dt_json_write(out, name);
    dt_strbuf_add_char(out, ':');
    DT_TRY(dt_web_route_find(&request, path)->page(&request, &reply, err));
    if (reply.stream.next != NULL)
        DT_TRY(add_stream(out, &reply.stream, report->store, err));
    else
        add_json(out, reply.owned, reply.length);
out:
    if (reply.stream.free != NULL)
        reply.stream.free(reply.stream.state);
    free(reply.owned);
    json_decref(name);
    dt_arena_release(&arena);
    return st;
}

static dt_status add_logs(dt_strbuf *out, const dt_web_report *report, const char *run,
                          dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count;
    dt_rank *ranks;
    dt_run row;

    DT_TRY(dt_store_run_find(report->store, &row, run, arena, err));
    DT_TRY(dt_store_rank_list(report->store, &ranks, &count, run, row.attempt, arena, err));
    for (int64_t i = 0; i < count && i < RANKS_MOST; i++) {
        const char *rank = dt_arena_printf(arena, "%lld", (long long)ranks[i].rank);
        const char *path = dt_arena_printf(arena, "/api/v1/runs/%s/logs", run);
        const char *arguments[] = {"rank", rank, "lines", LOG_LINES, NULL};
        const char *key = dt_arena_printf(arena, "%s?rank=%s", path, rank);

        DT_TRY(add_answer(out, report, path, arguments, key, err));
    }
out:
    return st;
}

/* Adds the answers of the steps that the answer without a step lists. below: "/samples". */
static dt_status add_steps(dt_strbuf *out, const dt_web_report *report, const char *run,
                           const char *below, const int64_t *steps, int64_t count, dt_arena *arena,
                           dt_error *err)
{
    const char *path = dt_arena_printf(arena, "/api/v1/runs/%s%s", run, below);
    int64_t most = strtoll(SAMPLE_STEPS, NULL, 10);
    dt_status st = DT_OK;

    for (int64_t i = 0; i < count; i++) {
        const char *step = dt_arena_printf(arena, "%lld", (long long)steps[i]);
        const char *arguments[] = {"step", step, "most", "1", NULL};

        if (i == 0 || i > count - most)
            DT_TRY(add_answer(out, report, path, arguments,
                              dt_arena_printf(arena, "%s?step=%s", path, step), err));
    }
out:
    return st;
}

static dt_status add_run(dt_strbuf *out, const dt_web_report *report, const char *run,
                         dt_error *err)
{
    static const char *const all[] = {"limit", "1000", NULL};
    static const char *const none[] = {NULL};
    static const char *const some[] = {"most", SAMPLE_STEPS, NULL};
    int64_t *steps, count;
    dt_status st = DT_OK;
    const char **names;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_metric_names(report->store, &names, &count, run, &arena, err));
    const char *buckets[] = {"buckets", count > METRICS_MANY ? BUCKETS_FEW : BUCKETS, NULL};
    const struct {
        const char *below, *const *arguments;
    } parts[] = {{"", none},
                 {"/recipe", none},
                 {"/metrics", buckets},
                 {"/checkpoints", none},
                 {"/evaluations", none},
                 {"/samples", some},
                 {"/notes", none},
                 {"/confusion", some},
                 {"/events", all}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const char *path = dt_arena_printf(&arena, "/api/v1/runs/%s%s", run, parts[i].below);

        DT_TRY(add_answer(out, report, path, parts[i].arguments, path, err));
    }
    DT_TRY(dt_store_sample_steps(report->store, &steps, &count, run, &arena, err));
    DT_TRY(add_steps(out, report, run, "/samples", steps, count, &arena, err));
    DT_TRY(dt_store_confusion_steps(report->store, &steps, &count, run, &arena, err));
    DT_TRY(add_steps(out, report, run, "/confusion", steps, count, &arena, err));
    DT_TRY(add_logs(out, report, run, &arena, err));
out:
    dt_arena_release(&arena);
    return st;
}

static dt_status add_answers(dt_strbuf *out, const dt_web_report *report, dt_error *err)
{
    json_t *runs = json_array();
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(runs, dt_web_string_json(report->runs[i]));
    dt_json_write(&text, runs);
    dt_strbuf_add_str(out, "{\"runs\":");
    add_json(out, text.data, text.length);
    dt_strbuf_add_str(out, ",\"answers\":{");
    for (size_t i = 0; i < report->count; i++)
        DT_TRY(add_run(out, report, report->runs[i], err));
    dt_strbuf_add_str(out, "}}");
out:
    dt_strbuf_release(&text);
    json_decref(runs);
    return st;
}

static void add_file(dt_strbuf *out, const char *name)
{
    dt_web_reply reply = {0};

    dt_web_reply_file(&reply, 200, name);
    dt_strbuf_add(out, reply.bytes, reply.length);
}

/* Appends the <main> element of a page. */
static void add_main(dt_strbuf *out, const char *page)
{
    static const char end[] = "</main>";
    dt_web_reply reply = {0};
    const char *begin, *until;

    dt_web_reply_file(&reply, 200, page); /* the file ends with a zero byte */
    begin = strstr(reply.bytes, "<main>");
    until = begin != NULL ? strstr(begin, end) : NULL;
    DT_ASSERT(until != NULL);
    dt_strbuf_add(out, begin, (size_t)(until - begin) + strlen(end));
}

dt_status dt_web_report_add(dt_strbuf *out, const dt_web_report *report, dt_error *err)
{
    bool several = report->count > 1;
    char time[DT_CLOCK_ISO_SIZE];
    dt_status st = DT_OK;
    dt_web_reply page = {0};
    const char *at, *mark;

    dt_web_reply_file(&page, 200, "report.html");
    for (at = page.bytes; (mark = strchr(at, '@')) != NULL; at = strchr(mark + 1, '@') + 1) {
        dt_strbuf_add(out, at, (size_t)(mark - at));
        if (strncmp(mark, "@STYLE@", 7) == 0)
            add_file(out, "app.css");
        else if (strncmp(mark, "@PAGE@", 6) == 0)
            dt_strbuf_add_str(out, several ? "compare" : "run");
        else if (strncmp(mark, "@TIME@", 6) == 0)
            dt_strbuf_add_str(out, dt_clock_iso(time, report->now_ms));
        else if (strncmp(mark, "@MAIN@", 6) == 0)
            add_main(out, several ? "compare.html" : "run.html");
        else if (strncmp(mark, "@ANSWERS@", 9) == 0)
            DT_TRY(add_answers(out, report, err));
        else if (strncmp(mark, "@CHART@", 7) == 0)
            add_file(out, "chart.js");
        else
            add_file(out, "report.js");
    }
    dt_strbuf_add_str(out, at);
out:
    return st;
}
