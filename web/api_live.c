/* api_live: a run while it trains, as server-sent events (text/event-stream).
 *
 *   event: open   the cursor of this moment: what was before it is to be asked for elsewhere
 *   event: news   what is new since the cursor before
 *   :             a comment where nothing is, so that both ends see that the other is there
 */
#define _GNU_SOURCE
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "web/live.h"
#include "web/request.h"

#include "base/banned.h"

#define BEAT_SECONDS 10.0 /* something is sent so often */
#define LOOK_SECONDS 2.0  /* whether the other side is still there */
#define RANKS_MOST   65536

typedef struct stream {
    dt_web_live *live;
    dt_web_follower follower;
    double sent; /* when something was, monotonic */
    int fd;      /* of the connection, to look at; -1: none */
    bool open;   /* it has no cursor of its own and is told the one of now */
} stream;

static bool has_left(const stream *s)
{
    struct pollfd fd = {.fd = s->fd, .events = POLLRDHUP};

    return poll(&fd, 1, 0) > 0;
}

static void stream_open(stream *s, dt_strbuf *out)
{
    if (s->open)
        dt_strbuf_add_fmt(out, "event: open\nid: %s\ndata: {\"api\":%d}\n\n",
                          s->follower.after.data, DT_WEB_API_VERSION);
    else
        dt_strbuf_add_str(out, ":\n\n"); /* the headers go at once */
}

/* A run that was removed meanwhile is the end, which is told where it is asked for again. */
static dt_status tell(dt_strbuf *out, stream *s, bool *more, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_web_live_tell(out, s->live, &s->follower, &problem);

    *more = st == DT_OK;
    if (st == DT_OK || st == DT_ERR_NOT_FOUND)
        return DT_OK;
    return DT_FAIL(err, st, "%s", problem.message);
}

static dt_status stream_next(void *state, dt_store *store, dt_strbuf *out, bool *more,
                             dt_error *err)
{
    dt_status st = DT_OK;
    stream *s = state;

    *more = true;
    if (store != NULL)
        stream_open(s, out);
    while (out->length == 0) {
        dt_web_wait found = dt_web_live_wait(s->live, &s->follower.version, LOOK_SECONDS);

        *more = found != DT_WEB_OVER && !has_left(s);
        if (!*more)
            goto out;
        if (found == DT_WEB_NEWS)
            DT_TRY(tell(out, s, more, err));
        if (!*more)
            goto out;
        if (out->length == 0 && dt_clock_monotonic_seconds() - s->sent >= BEAT_SECONDS)
            dt_strbuf_add_str(out, ":\n\n");
    }
    s->sent = dt_clock_monotonic_seconds();
out:
    return st;
}

static void stream_free(void *state)
{
    stream *s = state;

    if (s->live != NULL)
        dt_web_live_leave(s->live);
    free(s->follower.run);
    dt_strbuf_release(&s->follower.after);
    free(s);
}

/* What a browser sends when it comes back goes before what stood in the address then. */
static const char *cursor_given(const dt_web_request *request)
{
    const char *last =
        request->connection != NULL
            ? MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Last-Event-ID")
            : NULL;

    return last != NULL && last[0] != '\0' ? last : dt_web_argument(request, "after");
}

static int descriptor_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info != NULL ? info->connect_fd : -1;
}

dt_status dt_web_live_of_run(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    const char *given = cursor_given(request);
    stream *s = calloc(1, sizeof(*s));
    dt_status st = DT_OK;
    dt_run run;

    if (s == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "cannot write the answer: no memory");
    dt_strbuf_init(&s->follower.after);
    dt_web_reply_stream(reply, stream_next, stream_free, s);
    reply->type = "text/event-stream; charset=utf-8";
    reply->stream.waits = true;
    s->follower.version = -1;
    s->fd = descriptor_of(request->connection);
    s->sent = dt_clock_monotonic_seconds();
    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&s->follower.rank, request, "rank", -1, -1, RANKS_MOST, err));
    s->follower.run = strdup(run.id);
    if (s->follower.run == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "cannot write the answer: no memory");
    s->open = given == NULL || given[0] == '\0';
    if (s->open)
        DT_TRY(dt_web_live_now(&s->follower.after, request->live, request->store, run.id,
                               s->follower.rank, err));
    else
        dt_strbuf_add_str(&s->follower.after, given);
    if (!dt_web_live_join(request->live))
        DT_THROW(err, DT_ERR_BUSY, "too many follow runs: ask for what is new instead");
    s->live = request->live;
out:
    return st;
}
