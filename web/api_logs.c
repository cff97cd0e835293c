/* api_logs: the tail of one rank's log. The rank is a number that the store knows, so that the
 * path is made of nothing that came with the request.
 */
#include <string.h>

#include "web/log_tail.h"
#include "web/request.h"
#include "web/run_json.h"
#include "web/utf8.h"

#include "base/banned.h"

#define LINES_DEFAULT 200
#define LINES_MOST    5000
#define RANKS_MOST    65536

/* "TIME TEXT\n" ... as a list of objects. */
static json_t *lines_json(const dt_strbuf *text)
{
    json_t *list = json_array();
    const char *at = text->data, *end = text->data + text->length;

    while (at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((feed != NULL ? feed : end) - at);
        const char *space = memchr(at, ' ', length);
        size_t time = space != NULL ? (size_t)(space - at) : 0;
        size_t skip = space != NULL ? time + 1 : 0;

        json_array_append_new(list, json_pack("{so so}", "time", dt_web_text_json(at, time), "text",
                                              dt_web_text_json(at + skip, length - skip)));
        at += length + 1;
    }
    return list;
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
    const dt_rank *rank = NULL;
    int64_t wanted, lines;
    dt_status st = DT_OK;
    const char *path;
    dt_strbuf text;
    dt_run run;

    dt_strbuf_init(&text);
    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&wanted, request, "rank", 0, 0, RANKS_MOST, err));
    DT_TRY(dt_web_argument_int(&lines, request, "lines", LINES_DEFAULT, 1, LINES_MOST, err));
    DT_TRY(rank_find(&rank, request, &run, wanted, err));
    path = dt_arena_printf(request->arena, "%s/runs/%s/logs/rank-%lld.log", request->folder, run.id,
                           (long long)rank->rank);
    if (path == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "cannot read the log: no memory");
    DT_TRY(dt_log_tail(&text, path, lines, rank->log_bytes, err));
    st = dt_web_reply_json(reply, 200,
                           json_pack("{so sI so}", "run", dt_web_string_json(run.id), "rank",
                                     (json_int_t)rank->rank, "lines", lines_json(&text)),
                           err);
out:
    dt_strbuf_release(&text);
    return st;
}
