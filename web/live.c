/* live: watches the store for followers, and streams news to them as server-sent events. */
#include "web/web_int.h"

#include <math.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"

/* --- waking the followers */

#define LOOK_SECONDS 0.5 /* interval of checking the store for changes while there are followers */
#define BLIND_SECONDS \
    5.0 /* interval of reopening a store on a read-only file system, where a handle never sees changes */

static struct timespec in_seconds(double seconds)
{
    struct timespec at;
    double whole = floor(seconds);

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)whole;
    at.tv_nsec += (long)((seconds - whole) * 1e9);
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* --- the watcher */

typedef struct watch {
    dt_web_handle handle;
    int64_t seen;
} watch;

/* Returns true if the store may have changed since the last call. *wait: seconds until the next call. */
static bool look(watch *w, const char *path, double *wait)
{
    ino_t inode = w->handle.inode;
    dt_error ignored = DT_ERROR_INIT;
    int64_t version = 0;

    *wait = LOOK_SECONDS;
    if (dt_web_handle_renew(&w->handle, path, &ignored) != DT_OK)
        return false; /* the store is missing, and may come back */
    if (!dt_store_can_write(w->handle.store)) {
        dt_store_close(w->handle.store);
        w->handle.store = NULL;
        *wait = BLIND_SECONDS;
        return true;
    }
    if (dt_store_version_seen(w->handle.store, &version, &ignored) != DT_OK)
        return false;
    if (inode == w->handle.inode && version == w->seen)
        return false;
    w->seen = version;
    return true;
}

static void *watch_store(void *context)
{
    dt_web_live *live = context;
    watch w = {.seen = -1};
    struct timespec until;
    double wait;

    pthread_mutex_lock(&live->lock);
    while (!live->closing) {
        if (live->followers == 0) {
            pthread_cond_wait(&live->wanted, &live->lock);
            continue;
        }
        pthread_mutex_unlock(&live->lock);
        bool changed = look(&w, live->stores->path, &wait);
        pthread_mutex_lock(&live->lock);
        if (changed) {
            live->version++;
            pthread_cond_broadcast(&live->changed);
        }
        until = in_seconds(wait);
        while (!live->closing && pthread_cond_timedwait(&live->wanted, &live->lock, &until) == 0)
            ;
    }
    pthread_mutex_unlock(&live->lock);
    dt_store_close(w.handle.store);
    return NULL;
}

/* --- for followers */

dt_status dt_web_live_begin(dt_web_live *live, dt_web_stores *stores, const char *folder, int most,
                            dt_error *err)
{
    pthread_condattr_t clock;

    memset(live, 0, sizeof(*live));
    live->stores = stores;
    live->folder = folder;
    live->most = most;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&live->changed, &clock);
    pthread_cond_init(&live->wanted, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&live->lock, NULL);
    pthread_mutex_init(&live->reading, NULL);
    if (pthread_create(&live->watcher, NULL, watch_store, live) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot serve: cannot start a thread");
    live->begun = true;
    return DT_OK;
}

void dt_web_live_end_waits(dt_web_live *live)
{
    if (!live->begun)
        return;
    pthread_mutex_lock(&live->lock);
    live->closing = true;
    pthread_cond_broadcast(&live->changed);
    pthread_cond_broadcast(&live->wanted);
    pthread_mutex_unlock(&live->lock);
}

void dt_web_live_end(dt_web_live *live)
{
    if (!live->begun)
        return;
    pthread_join(live->watcher, NULL);
    for (int i = 0; i < DT_WEB_LIVE_NEWS; i++)
        dt_web_news_release(&live->news[i]);
    for (int i = 0; i < DT_WEB_LIVE_LISTS; i++)
        dt_web_list_release(&live->lists[i]);
    pthread_cond_destroy(&live->changed);
    pthread_cond_destroy(&live->wanted);
    pthread_mutex_destroy(&live->lock);
    pthread_mutex_destroy(&live->reading);
    live->begun = false;
}

/* false: too many followers */
static bool web_live_join(dt_web_live *live)
{
    bool room;

    pthread_mutex_lock(&live->lock);
    room = !live->closing && live->followers < live->most;
    live->followers += room;
    if (room && live->followers == 1)
        pthread_cond_signal(&live->wanted);
    pthread_mutex_unlock(&live->lock);
    return room;
}

static void web_live_leave(dt_web_live *live)
{
    pthread_mutex_lock(&live->lock);
    live->followers--;
    pthread_mutex_unlock(&live->lock);
}

/* Waits until the store's version differs from *version, which is then updated, or for `seconds`. */
static dt_web_wait web_live_wait(dt_web_live *live, int64_t *version, double seconds)
{
    struct timespec until = in_seconds(seconds > 0 ? seconds : 0);
    dt_web_wait found;
    int late = 0;

    pthread_mutex_lock(&live->lock);
    while (!live->closing && live->version == *version && late == 0)
        late = pthread_cond_timedwait(&live->changed, &live->lock, &until);
    found = live->closing ? DT_WEB_OVER : live->version == *version ? DT_WEB_QUIET : DT_WEB_NEWS;
    *version = live->version;
    pthread_mutex_unlock(&live->lock);
    return found;
}

/* api_live: streams news of a run, of several runs or of a list of runs, as server-sent events (text/event-stream).
 *
 *   event: open   the cursor of this moment; the client gets older data from the other routes
 *   event: news   what is new since the previous cursor
 *   :             a keep-alive comment, so that both ends notice a lost connection
 */

#define BEAT_SECONDS        10.0 /* interval of keep-alive comments */
#define CLIENT_LOOK_SECONDS 2.0  /* interval of checking whether the client has disconnected */
#define LATER_SECONDS       0.5  /* pause before a list is read again */
#define RANKS_MOST          65536
#define RUNS_MOST           20 /* per stream, as many as the page compares */

typedef struct stream {
    dt_web_live *live;
    dt_web_follower followers[RUNS_MOST];
    int count;
    dt_web_query query; /* for a stream of a list; in the arena */
    dt_arena arena;
    int64_t version; /* version of the store that was last sent */
    double sent;     /* when something was last sent, in monotonic seconds */
    int fd;          /* of the connection, to notice its end; -1: none */
    bool later;      /* the next news are sent after a pause */
    bool open;       /* the client has no cursor and gets the present one */
} stream;

static bool has_left(const stream *s)
{
    struct pollfd fd = {.fd = s->fd, .events = POLLRDHUP};

    return poll(&fd, 1, 0) > 0;
}

static void stream_open(stream *s, dt_strbuf *out)
{
    if (!s->open) {
        dt_strbuf_add_str(out, ":\n\n"); /* sends the headers at once */
        return;
    }
    dt_strbuf_add_str(out, "event: open\nid: ");
    dt_web_live_id_add(out, &s->followers[0]);
    dt_strbuf_add_fmt(out, "\ndata: {\"api\":%d}\n\n", DT_WEB_API_VERSION);
}

/* Appends the news of all followers. *more is false, which ends the stream, if a run was
 * removed: the client gets 404 when it connects again. */
static dt_status send_news(dt_strbuf *out, stream *s, bool *more, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    int64_t version = s->version;

    s->later = false;
    for (int i = 0; i < s->count && st == DT_OK; i++) {
        s->followers[i].version = version;
        st = dt_web_live_send(out, s->live, &s->followers[i], &problem);
        if (s->followers[i].version == DT_WEB_LIVE_LATER)
            s->later = true;
        else if (s->followers[i].version < 0)
            s->version = -1; /* more news are waiting */
    }
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
        dt_web_wait found =
            web_live_wait(s->live, &s->version, s->later ? LATER_SECONDS : CLIENT_LOOK_SECONDS);

        if (found == DT_WEB_QUIET && s->later)
            found = DT_WEB_NEWS;
        *more = found != DT_WEB_OVER && !has_left(s);
        if (!*more)
            goto out;
        if (found == DT_WEB_NEWS)
            DT_TRY(send_news(out, s, more, err));
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
        web_live_leave(s->live);
    for (int i = 0; i < s->count; i++) {
        free(s->followers[i].run);
        dt_strbuf_release(&s->followers[i].after);
    }
    dt_arena_release(&s->arena);
    free(s);
}

/* The Last-Event-ID of a browser that reconnects replaces the cursor in the address. */
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

/* --- what a stream follows */

static stream *stream_begin(dt_web_request *request, dt_web_reply *reply)
{
    stream *s = dt_calloc(1, sizeof(*s));

    dt_arena_init(&s->arena, 0);
    dt_web_reply_stream(reply, stream_next, stream_free, s);
    reply->type = "text/event-stream; charset=utf-8";
    reply->stream.waits = true;
    s->version = -1;
    s->fd = descriptor_of(request->connection);
    s->sent = dt_clock_monotonic_seconds();
    return s;
}

static void follower_add(stream *s, const char *run)
{
    dt_web_follower *follower = &s->followers[s->count++];

    dt_strbuf_init(&follower->after);
    follower->rank = -1;
    follower->run = dt_strdup(run);
}

/* Parses one cursor for each follower, separated by commas. Returns false if their number
 * differs, or if the text has a line break, which would end a line of the event. */
static bool cursors_take(stream *s, const char *given)
{
    if (strpbrk(given, "\r\n") != NULL)
        return false;
    for (int i = 0; i < s->count; i++) {
        size_t length = i + 1 < s->count ? strcspn(given, ",") : strlen(given);

        if (length == 0 || (i + 1 < s->count && given[length] != ','))
            return false;
        dt_strbuf_reset(&s->followers[i].after);
        dt_strbuf_add(&s->followers[i].after, given, length);
        given += length + (i + 1 < s->count);
    }
    return true;
}

/* Starts at the cursor that came with the request, or else at the present. */
static dt_status stream_follow(stream *s, dt_web_request *request, dt_error *err)
{
    const char *given = cursor_given(request);
    dt_status st = DT_OK;

    s->open = given == NULL || !cursors_take(s, given);
    for (int i = 0; s->open && i < s->count; i++)
        DT_TRY(dt_web_live_now(request->live, request->store, &s->followers[i], err));
    if (!web_live_join(request->live))
        DT_THROW(err, DT_ERR_BUSY, "too many clients follow runs: poll instead");
    s->live = request->live;
out:
    return st;
}

dt_status dt_web_live_of_run(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    stream *s = stream_begin(request, reply);
    dt_status st;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    follower_add(s, run.id);
    DT_TRY(dt_web_argument_int(&s->followers[0].rank, request, "rank", -1, -1, RANKS_MOST, err));
    DT_TRY(stream_follow(s, request, err));
out:
    return st;
}

static dt_status runs_follow(stream *s, dt_web_request *request, dt_error *err)
{
    const char **ids;
    int64_t count;
    dt_status st;

    DT_TRY(dt_web_requested_runs(&ids, &count, request, request->arena, err));
    if (count == 0 || count > RUNS_MOST)
        DT_THROW(err, DT_ERR_USAGE, "'runs': 1 to %d", RUNS_MOST);
    for (int64_t i = 0; i < count; i++)
        follower_add(s, ids[i]);
    for (int i = 0; i < s->count; i++) {
        s->followers[i].among = s->followers;
        s->followers[i].count = s->count;
    }
out:
    return st;
}

/* Follows a list. The key names the query, so that clients with the same query share the news. */
static void list_follow(stream *s)
{
    follower_add(s, s->query.key);
    s->followers[0].query = &s->query;
}

dt_status dt_web_live_of_several(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    stream *s = stream_begin(request, reply);
    dt_status st;

    DT_TRY(dt_web_requested_query(&s->query, request, DT_WEB_LIVE_LIST_MOST, &s->arena, err));
    if (dt_web_argument(request, "runs") != NULL)
        DT_TRY(runs_follow(s, request, err));
    else
        list_follow(s);
    DT_TRY(stream_follow(s, request, err));
out:
    return st;
}
