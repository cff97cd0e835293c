#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "web/live.h"
#include "web/live_cursor.h"
#include "web/request.h"
#include "web/run_json.h"

#include "base/banned.h"

typedef struct listing {
    const char **ids;
    int64_t count, total;
    dt_strbuf after;   /* the cursor */
    dt_strbuf changed; /* objects of runs, by commas */
} listing;

static uint32_t hash_of(const dt_strbuf *text)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < text->length; i++)
        hash = (hash ^ (uint8_t)text->data[i]) * 16777619u;
    return hash;
}

/* A run that was removed meanwhile is left out. What the clock alone changes is no news. */
static dt_status run_add(listing *l, const char *before, dt_store *store, const char *id,
                         int64_t now_ms, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    json_t *json = NULL, *elapsed;
    dt_strbuf text;
    dt_arena arena;
    char mark[96];
    dt_status st;
    dt_run run;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    st = dt_store_run_find(store, &run, id, &arena, &problem);
    if (st != DT_OK) {
        st = st == DT_ERR_NOT_FOUND ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
        goto out;
    }
    json = dt_web_run_json(&run, now_ms);
    elapsed = json_incref(json_object_get(json, "elapsed_seconds"));
    json_object_del(json, "elapsed_seconds");
    dt_json_write(&text, json);
    json_object_set_new(json, "elapsed_seconds", elapsed);
    snprintf(mark, sizeof(mark), ".%.64s-%" PRIx32 ".", run.id, hash_of(&text));
    dt_strbuf_add_str(&l->after, mark + 1);
    if (before == NULL || strstr(before, mark) == NULL) {
        dt_strbuf_add_str(&l->changed, l->changed.length > 0 ? "," : "");
        dt_json_write(&l->changed, json);
    }
out:
    json_decref(json);
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
    return st;
}

/* before: what is known is left out of `changed`; NULL: nothing is. */
static dt_status read_list(listing *l, const char *before, dt_web_live *live, dt_store *store,
                           const dt_run_search *search, int64_t now_ms, dt_arena *arena,
                           dt_error *err)
{
    dt_status st;

    DT_TRY(dt_store_run_search(store, &l->ids, &l->count, &l->total, search, arena, err));
    dt_strbuf_add_fmt(&l->after, "%" PRIx64 ".%" PRId64 ".",
                      dt_web_cursor_store(live->stores->path), l->total);
    for (int64_t i = 0; i < l->count; i++)
        DT_TRY(run_add(l, before, store, l->ids[i], now_ms, err));
out:
    return st;
}

static void body_add(dt_strbuf *body, const listing *l, int64_t now_ms)
{
    dt_strbuf_add_fmt(body, "\"time_ms\":%" PRId64 ",\"total\":%" PRId64 ",\"order\":[", now_ms,
                      l->total);
    for (int64_t i = 0; i < l->count; i++)
        dt_strbuf_add_fmt(body, "%s\"%s\"", i > 0 ? "," : "", l->ids[i]);
    dt_strbuf_add_fmt(body, "],\"runs\":[%s]", l->changed.data);
}

/* Whether a cursor is of this store. */
static bool is_ours(const dt_web_live *live, const char *cursor)
{
    char store[24];

    snprintf(store, sizeof(store), "%" PRIx64 ".", dt_web_cursor_store(live->stores->path));
    return strncmp(cursor, store, strlen(store)) == 0;
}

dt_status dt_web_live_list_read(dt_web_news *news, dt_web_live *live, dt_store *store,
                                const dt_run_search *search, dt_error *err)
{
    int64_t now_ms = dt_clock_wall_ms();
    listing l = {0};
    dt_strbuf body;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&body);
    dt_strbuf_init(&l.after);
    dt_strbuf_init(&l.changed);
    news->anew = !is_ours(live, news->before);
    DT_TRY(read_list(&l, news->before, live, store, search, now_ms, &arena, err));
    if (!news->anew && strcmp(l.after.data, news->before) != 0)
        body_add(&body, &l, now_ms);
    news->after = dt_strbuf_detach(&l.after);
    news->body = dt_strbuf_detach(&body);
out:
    dt_strbuf_release(&body);
    dt_strbuf_release(&l.after);
    dt_strbuf_release(&l.changed);
    dt_arena_release(&arena);
    return st;
}

dt_status dt_web_live_list_now(dt_strbuf *out, dt_web_live *live, dt_store *store,
                               const dt_run_search *search, dt_error *err)
{
    listing l = {0};
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&l.after);
    dt_strbuf_init(&l.changed);
    DT_TRY(read_list(&l, NULL, live, store, search, 0, &arena, err));
    dt_strbuf_reset(out);
    dt_strbuf_add(out, l.after.data, l.after.length);
out:
    dt_strbuf_release(&l.after);
    dt_strbuf_release(&l.changed);
    dt_arena_release(&arena);
    return st;
}
