/* api_logs: serves the tail of one rank's log. The path is built from a rank number that the
 * store knows, never from text of the request. */
#include <stdlib.h>
#include <string.h>

#include "web/log_tail.h"
#include "web/request.h"
#include "web/run_json.h"

#include "base/alloc.h"

#define LINES_DEFAULT 200
#define LINES_MOST    5000
#define RANKS_MOST    65536

typedef struct tail {
    dt_web_log_tail lines;
    dt_strbuf text; /* of the current read */
    json_t *head;   /* {"run", "rank"} */
    bool begun, any;
} tail;

static void add_line(tail *t, dt_strbuf *out, const char *at, size_t length)
{
    json_t *line = dt_web_log_line_json(at, length);

    dt_strbuf_add_str(out, t->any ? "," : "");
    dt_json_write(out, line);
    json_decref(line);
    t->any = true;
}

static dt_status tail_next(void *state, dt_store *store, dt_strbuf *out, bool *more, dt_error *err)
{
    tail *t = state;
    const char *at, *end, *feed;
    dt_status st;

    if (!t->begun) {
        dt_json_write(out, t->head);
        out->data[--out->length] = '\0'; /* drops the closing brace: more fields follow */
        dt_strbuf_add_str(out, ",\"lines\":[");
        t->begun = true;
    }
    dt_strbuf_reset(&t->text);
    st = dt_web_log_tail_next(&t->lines, &t->text, DT_WEB_PART_BYTES / 2, more, err);
    if (st != DT_OK)
        return st;
    end = t->text.data + t->text.length;
    for (at = t->text.data; at < end; at = feed + 1) {
        feed = memchr(at, '\n', (size_t)(end - at));
        if (feed == NULL)
            feed = end; /* the log was truncated meanwhile */
        add_line(t, out, at, (size_t)(feed - at));
    }
    if (!*more)
        dt_strbuf_add_fmt(out, "],\"api\":%d}\n", DT_WEB_API_VERSION);
    return DT_OK;
}

static void tail_free(void *state)
{
    tail *t = state;

    dt_web_log_tail_close(&t->lines);
    dt_strbuf_release(&t->text);
    json_decref(t->head);
    free(t);
}

static dt_status rank_find(const dt_rank **out, dt_web_request *request, const dt_run *run,
                           int64_t wanted, dt_error *err)
{
    dt_rank *ranks;
    int64_t count;
    dt_status st;

    st = dt_store_rank_list(request->store, &ranks, &count, run->id, run->attempt, request->arena,
                            err);
    if (st != DT_OK)
        return st;
    for (int64_t i = 0; i < count; i++) {
        if (ranks[i].rank == wanted) {
            *out = &ranks[i];
            return DT_OK;
        }
    }
    return DT_FAIL(err, DT_ERR_NOT_FOUND, "run '%s' has no rank %lld", run->id, (long long)wanted);
}

dt_status dt_web_logs(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    tail *t = dt_calloc(1, sizeof(*t));
    const dt_rank *rank = NULL;
    int64_t wanted, lines;
    dt_status st = DT_OK;
    const char *path;
    dt_run run;

    t->lines.fd = -1;
    dt_strbuf_init(&t->text);
    dt_web_reply_stream(reply, tail_next, tail_free, t);
    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&wanted, request, "rank", 0, 0, RANKS_MOST, err));
    DT_TRY(dt_web_argument_int(&lines, request, "lines", LINES_DEFAULT, 1, LINES_MOST, err));
    DT_TRY(rank_find(&rank, request, &run, wanted, err));
    path = dt_arena_printf(request->arena, "%s/runs/%s/logs/rank-%lld.log", request->folder, run.id,
                           (long long)rank->rank);
    DT_TRY(dt_web_log_tail_open(&t->lines, path, lines, rank->log_bytes, err));
    t->head = json_pack("{so sI sI}", "run", dt_web_string_json(run.id), "rank",
                        (json_int_t)rank->rank, "end_bytes", (json_int_t)t->lines.end);
out:
    return st;
}
