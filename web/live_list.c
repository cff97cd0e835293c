/* live_list: cursors of followers, and news of a list of runs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/memory.h"
#include "web/web_int.h"

/* --- cursors */

#define SERIES_MOST 4096

uint64_t dt_web_cursor_store(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* --- writing: groups curves by their step, since most curves are at the same step */

static int by_step(const void *a, const void *b)
{
    const dt_since_mark *left = a, *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return left->series < right->series ? -1 : left->series > right->series;
}

static void add_group(dt_strbuf *out, const dt_since_mark *marks, int64_t count)
{
    dt_strbuf_add_fmt(out, ".%lld:", (long long)marks[0].step);
    for (int64_t i = 0, last; i < count; i = last + 1) {
        for (last = i; last + 1 < count && marks[last + 1].series == marks[last].series + 1;)
            last++;
        dt_strbuf_add_fmt(out, "%s%lld", i > 0 ? "+" : "", (long long)marks[i].series);
        if (last > i)
            dt_strbuf_add_fmt(out, "-%lld", (long long)marks[last].series);
    }
}

void dt_web_cursor_add(dt_strbuf *out, const dt_web_cursor *cursor)
{
    int64_t count = cursor->since.count;
    dt_since_mark *marks = dt_calloc((size_t)count + 1, sizeof(*marks));

    dt_strbuf_add_fmt(out, "%llx.%lld.%lld.%lld", (unsigned long long)cursor->store,
                      (long long)cursor->since.attempt, (long long)cursor->since.event,
                      (long long)cursor->log_bytes);
    if (count > 0)
        memcpy(marks, cursor->since.marks, (size_t)count * sizeof(*marks));
    qsort(marks, (size_t)count, sizeof(*marks), by_step);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && marks[end].step == marks[i].step;)
            end++;
        add_group(out, &marks[i], end - i);
    }
    free(marks);
}

/* --- reading */

static bool read_number(int64_t *out, const char **at, int64_t low)
{
    char *end;

    if (**at != '-' && (**at < '0' || **at > '9'))
        return false;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    if (end == *at || errno != 0 || *out < low)
        return false;
    *at = end;
    return true;
}

static bool skip(const char **at, char c)
{
    if (**at != c)
        return false;
    ++*at;
    return true;
}

static bool add_mark(dt_since *since, int64_t series, int64_t step)
{
    if (since->count == SERIES_MOST || series > INT32_MAX)
        return false;
    since->marks[since->count++] = (dt_since_mark){series, step};
    return true;
}

/* Parses "STEP:SERIES+SERIES-SERIES". */
static bool read_group(dt_since *since, const char **at)
{
    int64_t step, first, last;

    if (!read_number(&step, at, INT64_MIN) || !skip(at, ':'))
        return false;
    do {
        if (!read_number(&first, at, 0))
            return false;
        last = first;
        if (skip(at, '-') && !read_number(&last, at, first))
            return false;
        for (; first <= last; first++)
            if (!add_mark(since, first, step))
                return false;
    } while (skip(at, '+'));
    return true;
}

static int by_series(const void *a, const void *b)
{
    const dt_since_mark *left = a, *right = b;

    return left->series < right->series ? -1 : left->series > right->series;
}

bool dt_web_cursor_read(dt_web_cursor *out, const char *text, dt_arena *arena)
{
    char *end;

    memset(out, 0, sizeof(*out));
    if (strlen(text) > DT_WEB_CURSOR_BYTES_MOST)
        return false;
    errno = 0;
    out->store = strtoull(text, &end, 16);
    text = end;
    if (errno != 0 || !skip(&text, '.') || !read_number(&out->since.attempt, &text, 1) ||
        !skip(&text, '.') || !read_number(&out->since.event, &text, 0) || !skip(&text, '.') ||
        !read_number(&out->log_bytes, &text, 0))
        return false;
    out->since.marks = dt_arena_alloc_array(arena, SERIES_MOST, sizeof(*out->since.marks));
    while (skip(&text, '.'))
        if (!read_group(&out->since, &text))
            return false;
    if (*text != '\0')
        return false;
    qsort(out->since.marks, (size_t)out->since.count, sizeof(*out->since.marks), by_series);
    return true;
}

/* --- lists */

/* The pause before a list is read again is this multiple of its reading time, so that reading
 * uses at most 5 % of a core. */
#define PAUSE_TIMES 20
#define PAUSE_MOST  10.0

static uint32_t hash_of(const dt_strbuf *text)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < text->length; i++)
        hash = (hash ^ (uint8_t)text->data[i]) * 16777619u;
    return hash;
}

/* Adds a run to the list; does nothing if the run was removed meanwhile. The hash leaves out
 * elapsed_seconds, which changes with the clock alone. */
static dt_status row_add(dt_web_list *list, dt_strbuf *after, dt_strbuf *order, dt_store *store,
                         const char *id, const dt_web_query *query, dt_error *err)
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
    DT_TRY(dt_web_row_json(&json, store, &run, query, list->now_ms, &arena, err));
    elapsed = json_incref(json_object_get(json, "elapsed_seconds"));
    json_object_del(json, "elapsed_seconds");
    dt_json_write(&text, json);
    json_object_set_new(json, "elapsed_seconds", elapsed);
    snprintf(mark, sizeof(mark), ".%.64s-%" PRIx32 ".", run.id, hash_of(&text));
    dt_strbuf_add_str(after, mark + 1);
    dt_strbuf_add_fmt(order, "%s\"%s\"", order->length > 0 ? "," : "", run.id);
    dt_strbuf_reset(&text);
    dt_json_write(&text, json);
    json_object_set_new(list->rows, mark, json_stringn(text.data, text.length));
out:
    json_decref(json);
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
    return st;
}

void dt_web_list_release(dt_web_list *list)
{
    free(list->key);
    free(list->after);
    free(list->order);
    json_decref(list->rows);
    *list = (dt_web_list){0};
}

static dt_status list_make(dt_web_list *list, dt_web_live *live, dt_store *store, const char *key,
                           int64_t version, const dt_web_query *query, dt_error *err)
{
    double began = dt_clock_monotonic_seconds();
    dt_strbuf after, order;
    const char **ids;
    dt_arena arena;
    int64_t count;
    dt_status st;

    *list = (dt_web_list){.key = dt_strdup(key),
                          .rows = json_object(),
                          .version = version,
                          .now_ms = dt_clock_wall_ms()};
    DT_ASSERT(list->rows != NULL);
    dt_arena_init(&arena, 0);
    dt_strbuf_init(&after);
    dt_strbuf_init(&order);
    DT_TRY(dt_store_run_search(store, &ids, &count, &list->total, &query->search, &arena, err));
    DT_TRY(dt_store_run_count_active(store, &list->active, err));
    dt_strbuf_add_fmt(&after, "%" PRIx64 ".%" PRId64 "-%" PRId64 ".",
                      dt_web_cursor_store(live->stores->path), list->total, list->active);
    for (int64_t i = 0; i < count; i++)
        DT_TRY(row_add(list, &after, &order, store, ids[i], query, err));
    list->after = dt_strbuf_detach(&after);
    list->order = dt_strbuf_detach(&order);
    list->made = dt_clock_monotonic_seconds();
    list->cost = list->made - began;
out:
    dt_strbuf_release(&after);
    dt_strbuf_release(&order);
    dt_arena_release(&arena);
    if (st != DT_OK)
        dt_web_list_release(list);
    return st;
}

static bool is_young(const dt_web_list *list)
{
    double pause = PAUSE_TIMES * list->cost;

    return dt_clock_monotonic_seconds() - list->made < (pause < PAUSE_MOST ? pause : PAUSE_MOST);
}

/* Returns the cached list if it is of this version of the store or was read a moment ago; else reads it. */
static dt_status list_find(dt_web_list **out, dt_web_live *live, dt_store *store, const char *key,
                           int64_t version, const dt_web_query *query, dt_error *err)
{
    dt_web_list *place = NULL;

    for (int i = 0; i < DT_WEB_LIVE_LISTS; i++)
        if (live->lists[i].key != NULL && strcmp(live->lists[i].key, key) == 0)
            place = &live->lists[i];
    *out = place;
    if (place != NULL && (place->version == version || is_young(place)))
        return DT_OK;
    if (place == NULL) {
        place = &live->lists[live->oldest_list];
        live->oldest_list = (live->oldest_list + 1) % DT_WEB_LIVE_LISTS;
    }
    *out = place;
    dt_web_list_release(place);
    return list_make(place, live, store, key, version, query, err);
}

/* Writes the list's fields, and those runs of which the cursor has no or another version. */
static void body_add(dt_strbuf *body, const dt_web_list *list, const char *before)
{
    const char *mark, *comma = "";
    json_t *row;

    dt_strbuf_add_fmt(body,
                      "\"time_ms\":%" PRId64 ",\"total\":%" PRId64 ",\"active\":%" PRId64
                      ",\"order\":[%s],\"runs\":[",
                      list->now_ms, list->total, list->active, list->order);
    json_object_foreach(list->rows, mark, row) {
        if (strstr(before, mark) != NULL)
            continue;
        dt_strbuf_add_str(body, comma);
        dt_strbuf_add(body, json_string_value(row), json_string_length(row));
        comma = ",";
    }
    dt_strbuf_add_char(body, ']');
}

/* Returns true if the cursor was made from this store file. */
static bool is_ours(const dt_web_live *live, const char *cursor)
{
    char store[24];

    snprintf(store, sizeof(store), "%" PRIx64 ".", dt_web_cursor_store(live->stores->path));
    return strncmp(cursor, store, strlen(store)) == 0;
}

dt_status dt_web_live_list_read(dt_web_news *news, dt_web_live *live, dt_store *store,
                                const dt_web_query *query, dt_error *err)
{
    dt_web_list *list;
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    DT_TRY(list_find(&list, live, store, news->run, news->version, query, err));
    news->reload = !is_ours(live, news->before);
    news->later = list->version != news->version;
    if (!news->reload && strcmp(list->after, news->before) != 0)
        body_add(&text, list, news->before);
    news->body = dt_strbuf_detach(&text);
    dt_strbuf_add_str(&text, list->after);
    news->after = dt_strbuf_detach(&text);
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_web_live_list_now(dt_strbuf *out, dt_web_live *live, dt_store *store, const char *key,
                               const dt_web_query *query, dt_error *err)
{
    dt_web_list *list;
    int64_t version;
    dt_status st;

    pthread_mutex_lock(&live->lock);
    version = live->version;
    pthread_mutex_unlock(&live->lock);
    pthread_mutex_lock(&live->reading);
    DT_TRY(list_find(&list, live, store, key, version, query, err));
    dt_strbuf_reset(out);
    dt_strbuf_add_str(out, list->after);
out:
    pthread_mutex_unlock(&live->reading);
    return st;
}
