/* request: reads the arguments of a request and the runs that it names, and fills replies. */
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "web/web_int.h"

/* --- arguments and replies */

#define JSON_TYPE "application/json; charset=utf-8"

void dt_web_reply_stream(dt_web_reply *reply,
                         dt_status (*next)(void *, dt_store *, dt_strbuf *, bool *, dt_error *),
                         void (*free_state)(void *), void *state)
{
    reply->status = 200;
    reply->type = JSON_TYPE;
    reply->stream = (dt_web_stream){.next = next, .free = free_state, .state = state};
}

dt_status dt_web_reply_json(dt_web_reply *reply, int status, json_t *object, dt_error *err)
{
    dt_strbuf text;

    if (object == NULL ||
        json_object_set_new(object, "api", json_integer(DT_WEB_API_VERSION)) != 0) {
        json_decref(object);
        return DT_FAIL(err, DT_ERR_NOMEM, "cannot write the answer: no memory");
    }
    dt_strbuf_init(&text);
    dt_json_write(&text, object);
    dt_strbuf_add_char(&text, '\n');
    json_decref(object);
    reply->status = status;
    reply->type = JSON_TYPE;
    reply->length = text.length;
    reply->owned = dt_strbuf_detach(&text);
    return DT_OK;
}

const char *dt_web_argument(const dt_web_request *request, const char *name)
{
    const char *const *at = request->arguments;

    if (request->connection == NULL) {
        while (at != NULL && *at != NULL && strcmp(*at, name) != 0)
            at += 2;
        return at != NULL && *at != NULL ? at[1] : NULL;
    }
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

typedef struct gathered {
    const char *name, **values;
    int64_t count, most;
    bool full;
} gathered;

static enum MHD_Result gather(void *context, enum MHD_ValueKind kind, const char *key,
                              const char *value)
{
    gathered *g = context;

    if (strcmp(key, g->name) != 0 || value == NULL)
        return MHD_YES;
    g->full = g->count == g->most;
    if (g->full)
        return MHD_NO;
    g->values[g->count++] = value;
    return MHD_YES;
}

dt_status dt_web_arguments(const char ***out, int64_t *count, const dt_web_request *request,
                           const char *name, int64_t most, dt_arena *arena, dt_error *err)
{
    gathered g = {.name = name, .most = most};

    g.values = dt_arena_alloc_array(arena, (size_t)most, sizeof(*g.values));
    if (request->connection != NULL)
        MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, gather, &g);
    else
        for (const char *const *at = request->arguments; at != NULL && *at != NULL; at += 2)
            gather(&g, MHD_GET_ARGUMENT_KIND, at[0], at[1]);
    if (g.full)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s': at most %lld", name, (long long)most);
    for (int64_t i = 0; i < g.count; i++) /* a stream outlives the request */
        g.values[i] = dt_arena_strdup(arena, g.values[i]);
    *out = g.values;
    *count = g.count;
    return DT_OK;
}

dt_status dt_web_argument_list(const char ***out, int64_t *count, const dt_web_request *request,
                               const char *name, int64_t most, dt_arena *arena, dt_error *err)
{
    const char *text = dt_web_argument(request, name);

    *out = dt_arena_alloc_array(arena, (size_t)most, sizeof(**out));
    *count = 0;
    for (size_t length; text != NULL && *text != '\0'; text += length + (text[length] == ',')) {
        length = strcspn(text, ",");
        if (length == 0)
            continue;
        if (*count == most)
            return DT_FAIL(err, DT_ERR_USAGE, "'%s': at most %lld", name, (long long)most);
        (*out)[(*count)++] = dt_arena_strndup(arena, text, length);
    }
    return DT_OK;
}

dt_status dt_web_argument_int(int64_t *out, const dt_web_request *request, const char *name,
                              int64_t fallback, int64_t low, int64_t high, dt_error *err)
{
    const char *text = dt_web_argument(request, name);
    long long value;
    char *end;

    *out = fallback;
    if (text == NULL)
        return DT_OK;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < low || value > high)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s': expected a whole number from %lld to %lld", name,
                       (long long)low, (long long)high);
    *out = value;
    return DT_OK;
}

dt_status dt_web_run(dt_run *out, const dt_web_request *request, dt_error *err)
{
    dt_status st = dt_store_run_find(request->store, out, request->run, request->arena, err);
    dt_error problem = DT_ERROR_INIT;

    if (st != DT_ERR_USAGE)
        return st;
    problem = *err; /* an ambiguous beginning of an id is 404: no run has this address */
    dt_error_clear(err);
    return DT_FAIL(err, DT_ERR_NOT_FOUND, "%s", problem.message);
}

/* --- the runs that a request names */

/* Adds the runs of a list like "a,b,last" to the ids, each once. */
static dt_status named(const char **ids, int64_t *count, dt_web_request *request, const char *list,
                       dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t length; *list != '\0'; list += length + (list[length] == ',')) {
        bool known = false;
        dt_run run;

        length = strcspn(list, ",");
        if (*count == DT_WEB_REQUESTED_RUNS_MAX)
            DT_THROW(err, DT_ERR_USAGE, "'runs': at most %d", DT_WEB_REQUESTED_RUNS_MAX);
        request->run = dt_arena_strndup(request->arena, list, length);
        DT_TRY(dt_web_run(&run, request, err));
        for (int64_t i = 0; i < *count; i++)
            known = known || strcmp(ids[i], run.id) == 0;
        if (!known)
            ids[(*count)++] = dt_arena_strdup(arena, run.id);
    }
out:
    return st;
}

dt_status dt_web_requested_runs(const char ***ids, int64_t *count, dt_web_request *request,
                                dt_arena *arena, dt_error *err)
{
    const char *group = dt_web_argument(request, "group"), *list = dt_web_argument(request, "runs");

    *count = 0;
    if ((group == NULL) == (list == NULL))
        return DT_FAIL(err, DT_ERR_USAGE, "one of 'runs' and 'group' is required");
    if (list == NULL)
        return dt_store_group_runs(request->store, ids, count, group, arena, err);
    *ids = dt_arena_alloc_array(arena, DT_WEB_REQUESTED_RUNS_MAX, sizeof(**ids));
    return named(*ids, count, request, list, arena, err);
}

#define LIMIT_DEFAULT 200

/* Parses a sort key: "loss" or "-loss". The minus sign sorts by descending values (largest or newest first). */
static void read_sort(dt_run_search *search, const char *text)
{
    if (text == NULL)
        return;
    search->rising = text[0] != '-';
    search->sort = text + (text[0] == '-');
}

static const char *kept_argument(const dt_web_request *request, const char *name, dt_arena *arena)
{
    const char *text = dt_web_argument(request, name);

    return text != NULL ? dt_arena_strdup(arena, text) : NULL;
}

static dt_status read_filters(dt_web_query *out, const dt_web_request *request, dt_strbuf *key,
                              dt_arena *arena, dt_error *err)
{
    dt_run_filter *filters = dt_arena_alloc_array(arena, DT_WEB_FILTERS_MAX, sizeof(filters[0]));
    dt_status st = DT_OK;
    const char **texts;
    int64_t count;

    DT_TRY(dt_web_arguments(&texts, &count, request, "filter", DT_WEB_FILTERS_MAX, arena, err));
    for (int64_t i = 0; i < count; i++) {
        DT_TRY(dt_run_filter_parse(&filters[i], texts[i], arena, err));
        dt_strbuf_add_fmt(key, "\n%s", texts[i]);
    }
    out->search.filters = filters;
    out->search.filters_count = (size_t)count;
out:
    return st;
}

dt_status dt_web_requested_query(dt_web_query *out, dt_web_request *request, int64_t limit_most,
                                 dt_arena *arena, dt_error *err)
{
    const char *wanted = dt_web_argument(request, "state");
    dt_run_search *search = &out->search;
    dt_status st = DT_OK;
    dt_run_state state;
    int64_t archived;
    dt_strbuf key;

    *out = (dt_web_query){.search = {.state = -1}};
    dt_strbuf_init(&key);
    DT_TRY(
        dt_web_argument_int(&search->limit, request, "limit", LIMIT_DEFAULT, 1, limit_most, err));
    DT_TRY(dt_web_argument_int(&search->offset, request, "offset", 0, 0, INT32_MAX, err));
    if (wanted != NULL && strcmp(wanted, "active") == 0)
        search->state = DT_RUN_SEARCH_ACTIVE;
    else if (wanted != NULL && !dt_run_state_parse(&state, wanted))
        DT_THROW(err, DT_ERR_USAGE, "'state': '%.32s' is not a state of a run", wanted);
    else if (wanted != NULL)
        search->state = (int)state;
    search->words = kept_argument(request, "q", arena);
    search->group = kept_argument(request, "group", arena);
    search->tag = kept_argument(request, "tag", arena);
    DT_TRY(dt_web_argument_int(&archived, request, "archived", 0, 0, 1, err));
    search->archived = archived != 0;
    read_sort(search, kept_argument(request, "sort", arena));
    dt_strbuf_add_fmt(&key, "?%lld %lld %d %d %d %s", (long long)search->limit,
                      (long long)search->offset, search->state, search->archived, search->rising,
                      search->sort != NULL ? search->sort : "-");
    for (int i = 0; i < 3; i++) {
        const char *text = i == 0 ? search->words : i == 1 ? search->group : search->tag;

        dt_strbuf_add_fmt(&key, "\n%s%s", text != NULL ? "=" : "", text != NULL ? text : "");
    }
    DT_TRY(read_filters(out, request, &key, arena, err));
    DT_TRY(dt_web_argument_list(&out->columns, &out->columns_count, request, "columns",
                                DT_WEB_COLUMNS_MAX, arena, err));
    for (int64_t i = 0; i < out->columns_count; i++)
        dt_strbuf_add_fmt(&key, "\t%s", out->columns[i]);
    out->key = dt_arena_strdup(arena, key.data);
out:
    dt_strbuf_release(&key);
    return st;
}
