/* live_news: reads what is new of a run after a cursor, as one event: points, events, log lines
 * and, if it changed, the state of the run. One event with one cursor: the client has received
 * all of it or nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "web/web_int.h"

#define POINTS_MOST 4096 /* per event; the rest follows at once */
#define EVENTS_MOST 200
#define LOG_BYTES   ((size_t)64 << 10)

/* --- points: the columns of a curve are collected until the next curve begins */

typedef struct columns {
    dt_strbuf *out;
    dt_strbuf step, value, time_ms;
    const char *name; /* of the curve; NULL: none is open */
    bool any;
} columns;

static void curve_end(columns *c)
{
    json_t *name;

    if (c->name == NULL)
        return;
    name = dt_web_string_json(c->name);
    dt_strbuf_add_str(c->out, c->any ? "," : ",\"series\":{");
    dt_json_write(c->out, name);
    dt_strbuf_add_fmt(c->out, ":{\"step\":[%s],\"value\":[%s],\"time_ms\":[%s]}", c->step.data,
                      c->value.data, c->time_ms.data);
    json_decref(name);
    dt_strbuf_reset(&c->step);
    dt_strbuf_reset(&c->value);
    dt_strbuf_reset(&c->time_ms);
    c->any = true;
    c->name = NULL;
}

static bool point_add(void *context, const dt_metric *point)
{
    const char *comma = ",";
    columns *c = context;

    if (c->name != point->name) {
        curve_end(c);
        c->name = point->name;
        comma = "";
    }
    dt_strbuf_add_fmt(&c->step, "%s%lld", comma, (long long)point->step);
    dt_strbuf_add_str(&c->value, comma);
    dt_web_add_real(&c->value, point->value);
    dt_strbuf_add_fmt(&c->time_ms, "%s%lld", comma, (long long)point->time_ms);
    return true;
}

static dt_status points_add(dt_strbuf *out, dt_web_cursor *at, bool *more, dt_store *store,
                            const char *run, dt_arena *arena, dt_error *err)
{
    int64_t attempt = at->since.attempt;
    columns c = {.out = out};
    dt_strbuf series;
    dt_status st;

    dt_strbuf_init(&series);
    dt_strbuf_init(&c.step);
    dt_strbuf_init(&c.value);
    dt_strbuf_init(&c.time_ms);
    c.out = &series;
    DT_TRY(dt_store_since_points(store, &at->since, more, run, POINTS_MOST, point_add, &c, arena,
                                 err));
    curve_end(&c);
    if (c.any || at->since.attempt != attempt)
        dt_strbuf_add_fmt(out, ",\"attempt\":%lld%s%s", (long long)at->since.attempt, series.data,
                          c.any ? "}" : "");
out:
    dt_strbuf_release(&series);
    dt_strbuf_release(&c.step);
    dt_strbuf_release(&c.value);
    dt_strbuf_release(&c.time_ms);
    return st;
}

/* --- events */

static dt_status events_add(dt_strbuf *out, dt_web_cursor *at, bool *more, dt_store *store,
                            const char *run, dt_arena *arena, dt_error *err)
{
    dt_store_event *events;
    bool any = false;
    int64_t count;
    dt_status st;

    DT_TRY(
        dt_store_event_list(store, &events, &count, run, at->since.event, EVENTS_MOST, arena, err));
    for (int64_t i = 0; i < count; i++) {
        json_t *event;

        at->since.event = events[i].id;
        if (!dt_web_event_is_shown(events[i].kind))
            continue;
        event = dt_web_event_json(&events[i]);
        dt_strbuf_add_str(out, any ? "," : ",\"events\":[");
        dt_json_write(out, event);
        json_decref(event);
        any = true;
    }
    dt_strbuf_add_str(out, any ? "]" : "");
    *more = *more || count == EVENTS_MOST;
out:
    return st;
}

/* --- the log of a rank */

static dt_status log_bytes_read(int64_t *out, dt_store *store, const dt_run *run, int64_t rank,
                                dt_arena *arena, dt_error *err)
{
    dt_rank *ranks;
    int64_t count;
    dt_status st;

    *out = 0;
    DT_TRY(dt_store_rank_list(store, &ranks, &count, run->id, run->attempt, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (ranks[i].rank == rank)
            *out = ranks[i].log_bytes;
out:
    return st;
}

static void lines_add(dt_strbuf *out, const dt_strbuf *text)
{
    const char *at = text->data, *end = text->data + text->length, *feed;

    for (; at < end; at = feed + 1) {
        json_t *line;

        feed = memchr(at, '\n', (size_t)(end - at));
        if (feed == NULL)
            feed = end;
        line = dt_web_log_line_json(at, (size_t)(feed - at));
        dt_strbuf_add_str(out, at > text->data ? "," : "");
        dt_json_write(out, line);
        json_decref(line);
    }
}

static dt_status log_add(dt_strbuf *out, dt_web_cursor *at, bool *more, const dt_web_live *live,
                         dt_store *store, const dt_run *run, int64_t rank, dt_arena *arena,
                         dt_error *err)
{
    dt_web_log_tail tail = {.fd = -1};
    int64_t end, from = at->log_bytes;
    const char *path;
    dt_strbuf text;
    dt_status st;
    bool rest;

    dt_strbuf_init(&text);
    DT_TRY(log_bytes_read(&end, store, run, rank, arena, err));
    if (end > 0 && end < from)
        at->log_bytes = end; /* shorter than what was sent: the file was replaced */
    if (end <= from)
        goto out;
    path = dt_arena_printf(arena, "%s/runs/%s/logs/rank-%lld.log", live->folder, run->id,
                           (long long)rank);
    DT_TRY(dt_web_log_tail_open(&tail, path, 1, end, err));
    tail.at = from;
    tail.end = end;
    if (tail.fd >= 0)
        DT_TRY(dt_web_log_tail_next(&tail, &text, LOG_BYTES, &rest, err));
    /* No text: the file was truncated, skip to the end. */
    at->log_bytes = text.length > 0 ? tail.at : end;
    *more = *more || at->log_bytes < end;
    if (text.length > 0) {
        dt_strbuf_add_fmt(
            out, ",\"log\":{\"rank\":%lld,\"from_bytes\":%lld,\"end_bytes\":%lld,\"lines\":[",
            (long long)rank, (long long)from, (long long)at->log_bytes);
        lines_add(out, &text);
        dt_strbuf_add_str(out, "]}");
    }
out:
    dt_web_log_tail_close(&tail);
    dt_strbuf_release(&text);
    return st;
}

/* --- the state of the run; changes that come only from the clock do not count as news */

static dt_status view_add(dt_web_news *news, dt_web_request *request, dt_error *err)
{
    json_t *view = NULL, *run;
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    DT_TRY(dt_web_run_view_json(&view, request, err));
    dt_json_write(&text, view);
    news->view = dt_strbuf_detach(&text);
    run = json_object_get(view, "run");
    json_object_del(view, "time_ms");
    json_object_del(run, "elapsed_seconds");
    json_object_del(run, "eta_seconds");
    dt_json_write(&text, view);
    news->view_hash = 1469598103934665603u;
    for (size_t i = 0; i < text.length; i++)
        news->view_hash = (news->view_hash ^ (uint8_t)text.data[i]) * 1099511628211u;
out:
    json_decref(view);
    dt_strbuf_release(&text);
    return st;
}

/* --- all news of a run */

static dt_status run_now(dt_strbuf *out, dt_web_live *live, dt_store *store, const char *id,
                         int64_t rank, dt_error *err)
{
    dt_web_cursor now = {.store = dt_web_cursor_store(live->stores->path)};
    dt_arena arena;
    dt_status st;
    dt_run run;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_run_find(store, &run, id, &arena, err));
    DT_TRY(dt_store_since_now(store, &now.since, run.id, &arena, err));
    if (rank >= 0)
        DT_TRY(log_bytes_read(&now.log_bytes, store, &run, rank, &arena, err));
    dt_strbuf_reset(out);
    dt_web_cursor_add(out, &now);
out:
    dt_arena_release(&arena);
    return st;
}

dt_status dt_web_live_now(dt_web_live *live, dt_store *store, dt_web_follower *follower,
                          dt_error *err)
{
    return follower->query != NULL
               ? dt_web_live_list_now(&follower->after, live, store, follower->run, follower->query,
                                      err)
               : run_now(&follower->after, live, store, follower->run, follower->rank, err);
}

static dt_status body_add(dt_strbuf *body, dt_web_cursor *at, dt_web_news *news, dt_web_live *live,
                          dt_web_request *request, dt_error *err)
{
    dt_status st;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(points_add(body, at, &news->more, request->store, run.id, request->arena, err));
    DT_TRY(events_add(body, at, &news->more, request->store, run.id, request->arena, err));
    if (news->rank >= 0)
        DT_TRY(log_add(body, at, &news->more, live, request->store, &run, news->rank,
                       request->arena, err));
    DT_TRY(view_add(news, request, err));
out:
    return st;
}

static dt_status news_read(dt_web_news *news, dt_web_live *live, dt_store *store, dt_error *err)
{
    dt_web_request request = {
        .store = store, .folder = live->folder, .run = news->run, .now_ms = dt_clock_wall_ms()};
    dt_strbuf body, after;
    dt_web_cursor at;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&body);
    dt_strbuf_init(&after);
    request.arena = &arena;
    news->reload = !dt_web_cursor_read(&at, news->before, &arena) ||
                   at.store != dt_web_cursor_store(live->stores->path);
    if (news->reload) {
        DT_TRY(run_now(&after, live, store, news->run, news->rank, err));
    } else {
        DT_TRY(body_add(&body, &at, news, live, &request, err));
        dt_web_cursor_add(&after, &at);
    }
    news->after = dt_strbuf_detach(&after);
    news->body = dt_strbuf_detach(&body);
out:
    dt_strbuf_release(&body);
    dt_strbuf_release(&after);
    dt_arena_release(&arena);
    return st;
}

void dt_web_news_release(dt_web_news *news)
{
    free(news->run);
    free(news->before);
    free(news->after);
    free(news->body);
    free(news->view);
    *news = (dt_web_news){0};
}

static dt_status news_make(dt_web_news *news, dt_web_live *live, const dt_web_follower *follower,
                           dt_error *err)
{
    dt_web_handle *handle = NULL;
    dt_status st;

    *news = (dt_web_news){.run = dt_strdup(follower->run),
                          .before = dt_strdup(follower->after.data),
                          .rank = follower->rank,
                          .version = follower->version};
    DT_TRY(dt_web_stores_take(&handle, live->stores, DT_WEB_CHEAP, err));
    DT_TRY(follower->query != NULL
               ? dt_web_live_list_read(news, live, handle->store, follower->query, err)
               : news_read(news, live, handle->store, err));
out:
    if (handle != NULL)
        dt_web_stores_give_back(live->stores, handle);
    if (st != DT_OK)
        dt_web_news_release(news);
    return st;
}

/* Returns the cached news of another follower at the same cursor; else reads the news, replacing the oldest entry. */
static dt_status news_find(dt_web_news **out, dt_web_live *live, const dt_web_follower *follower,
                           dt_error *err)
{
    dt_web_news *place = &live->news[live->oldest];
    dt_status st;

    for (int i = 0; i < DT_WEB_LIVE_NEWS; i++) {
        dt_web_news *news = &live->news[i];

        if (news->run != NULL && !news->later && news->version == follower->version &&
            news->rank == follower->rank && strcmp(news->before, follower->after.data) == 0 &&
            strcmp(news->run, follower->run) == 0) {
            *out = news;
            return DT_OK;
        }
    }
    dt_web_news_release(place);
    st = news_make(place, live, follower, err);
    live->oldest = (live->oldest + 1) % DT_WEB_LIVE_NEWS;
    *out = place;
    return st;
}

void dt_web_live_id_add(dt_strbuf *out, const dt_web_follower *follower)
{
    if (follower->among == NULL)
        dt_strbuf_add_str(out, follower->after.data);
    for (int i = 0; follower->among != NULL && i < follower->count; i++)
        dt_strbuf_add_fmt(out, "%s%s", i > 0 ? "," : "", follower->among[i].after.data);
}

static void event_add(dt_strbuf *out, const dt_web_news *news, const dt_web_follower *follower,
                      bool with_view)
{
    const char *body = news->body[0] == ',' ? news->body + 1 : news->body;

    dt_strbuf_add_str(out, "event: news\nid: ");
    dt_web_live_id_add(out, follower);
    dt_strbuf_add_str(out, "\ndata: {");
    if (follower->among != NULL)
        dt_strbuf_add_fmt(out, "\"run\":\"%s\",", news->run); /* an id needs no escaping */
    dt_strbuf_add_str(out, body);
    if (with_view) {
        dt_strbuf_add_str(out, body[0] != '\0' ? ",\"view\":" : "\"view\":");
        dt_strbuf_add_str(out, news->view);
    }
    dt_strbuf_add_str(out, "}\n\n");
}

dt_status dt_web_live_send(dt_strbuf *out, dt_web_live *live, dt_web_follower *follower,
                           dt_error *err)
{
    dt_web_news *news;
    dt_status st;

    pthread_mutex_lock(&live->reading);
    DT_TRY(news_find(&news, live, follower, err));
    dt_strbuf_reset(&follower->after);
    dt_strbuf_add_str(&follower->after, news->after);
    if (news->reload) {
        dt_strbuf_add_str(out, "event: open\nid: ");
        dt_web_live_id_add(out, follower);
        dt_strbuf_add_fmt(out, "\ndata: {\"api\":%d}\n\n", DT_WEB_API_VERSION);
    } else {
        if (news->body[0] != '\0' || news->view_hash != follower->view_hash)
            event_add(out, news, follower, news->view_hash != follower->view_hash);
        follower->view_hash = news->view_hash;
        if (news->more)
            follower->version = -1; /* asked again at once */
        if (news->later)
            follower->version = DT_WEB_LIVE_LATER;
    }
out:
    pthread_mutex_unlock(&live->reading);
    return st;
}
