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

dt_status dt_web_requested_search(dt_run_search *out, dt_web_request *request, int64_t limit_most,
                                  dt_error *err)
{
    const char *wanted = dt_web_argument(request, "state");
    dt_status st = DT_OK;
    dt_run_state state;

    *out = (dt_run_search){.state = -1, .words = dt_web_argument(request, "q")};
    DT_TRY(dt_web_argument_int(&out->limit, request, "limit", LIMIT_DEFAULT, 1, limit_most, err));
    DT_TRY(dt_web_argument_int(&out->offset, request, "offset", 0, 0, INT32_MAX, err));
    if (wanted != NULL && strcmp(wanted, "active") == 0)
        out->state = DT_RUN_SEARCH_ACTIVE;
    else if (wanted != NULL && !dt_run_state_parse(&state, wanted))
        DT_THROW(err, DT_ERR_USAGE, "'state': '%.32s' is not a state of a run", wanted);
    else if (wanted != NULL)
        out->state = (int)state;
    read_sort(out, dt_web_argument(request, "sort"));
out:
    return st;
}
