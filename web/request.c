#include "web/request.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

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
