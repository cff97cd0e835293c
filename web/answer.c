#define _GNU_SOURCE
#include "web/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "web/access.h"
#include "web/gate.h"
#include "web/routes.h"
#include "web/run_json.h"

#include "base/banned.h"

static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

static int http_status(dt_status st)
{
    switch (st) {
    case DT_ERR_NOT_FOUND:
        return 404;
    case DT_ERR_USAGE:
        return 400;
    case DT_ERR_BUSY:
        return 503;
    default:
        return 500;
    }
}

/* Leaves the reply empty only where there is no memory. */
static void reply_error(dt_web_reply *reply, int status, const char *message)
{
    dt_web_reply_json(reply, status,
                      json_pack("{s{si so}}", "error", "status", status, "message",
                                dt_web_string_json(message)), /* it may repeat any bytes */
                      NULL);
}

dt_web_client *dt_web_guest_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

static void set_phase(dt_web_site *site, dt_web_client *client, dt_web_phase phase)
{
    if (client != NULL)
        dt_web_admission_phase(&site->admission, client, phase);
}

/* --- an answer in parts */

typedef struct sending {
    dt_web_site *site;
    dt_web_client *client;
    dt_web_stream stream;
    dt_strbuf part;
    size_t at; /* of the part: sent up to here */
    bool more;
} sending;

static void sending_free(void *context)
{
    sending *s = context;

    if (s->stream.free != NULL)
        s->stream.free(s->stream.state);
    dt_strbuf_release(&s->part);
    free(s);
}

static dt_status part_make(sending *s, dt_store *store, dt_error *err)
{
    dt_strbuf_reset(&s->part);
    s->at = 0;
    return s->stream.next(s->stream.state, store, &s->part, &s->more, err);
}

static dt_status part_next(sending *s, dt_error *err)
{
    dt_web_handle *handle;
    dt_status st = dt_web_stores_take(&handle, &s->site->stores, DT_WEB_EXPENSIVE, err);

    if (st != DT_OK)
        return st;
    st = part_make(s, handle->store, err);
    dt_web_stores_give_back(&s->site->stores, handle);
    return st;
}

/* MHD's reader: what is left of the part, or the next one. */
static ssize_t part_read(void *context, uint64_t position, char *out, size_t most)
{
    dt_error err = DT_ERROR_INIT;
    sending *s = context;
    size_t left;

    while (s->at == s->part.length && s->more) {
        set_phase(s->site, s->client, DT_WEB_WORKING);
        if (part_next(s, &err) != DT_OK) {
            dt_log_warn("an answer is broken off: %s", err.message);
            return MHD_CONTENT_READER_END_WITH_ERROR;
        }
        set_phase(s->site, s->client, DT_WEB_ANSWERING);
    }
    left = s->part.length - s->at;
    if (left == 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (left < most)
        most = left;
    memcpy(out, s->part.data + s->at, most);
    s->at += most;
    return (ssize_t)most;
}

/* Makes the first part at once: an error is still an answer then, and a small answer whole. */
static dt_status stream_begin(sending **out, dt_web_site *site, dt_web_client *client,
                              dt_web_reply *reply, dt_store *store, dt_error *err)
{
    sending *s = calloc(1, sizeof(*s));
    dt_status st;

    *out = NULL;
    if (s == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "cannot write the answer: no memory");
    s->site = site;
    s->client = client;
    s->stream = reply->stream;
    reply->stream = (dt_web_stream){0};
    dt_strbuf_init(&s->part);
    st = part_make(s, store, err);
    if (st == DT_OK && s->more) {
        *out = s;
        return DT_OK;
    }
    if (st == DT_OK) {
        reply->length = s->part.length;
        reply->owned = dt_strbuf_detach(&s->part);
    }
    sending_free(s);
    return st;
}

/* --- from the reply to the connection */

static struct MHD_Response *response_of(dt_web_reply *reply, sending *parts)
{
    if (parts != NULL)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, DT_WEB_PART_BYTES, part_read,
                                                 parts, sending_free);
    if (reply->owned != NULL)
        return MHD_create_response_from_buffer(reply->length, reply->owned, MHD_RESPMEM_MUST_FREE);
    if (reply->bytes != NULL)
        return MHD_create_response_from_buffer(reply->length, (void *)(uintptr_t)reply->bytes,
                                               MHD_RESPMEM_PERSISTENT);
    return NULL;
}

static bool header_add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool headers_add(struct MHD_Response *response, const dt_web_reply *reply)
{
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        if (!header_add(response, headers[i].name, headers[i].value))
            return false;
    return header_add(response, "Content-Type", reply->type) &&
           (reply->status != 405 || header_add(response, "Allow", "GET, HEAD")) &&
           (reply->status != 503 || header_add(response, "Retry-After", "1")) &&
           (reply->status != 401 || header_add(response, "WWW-Authenticate", "Bearer")) &&
           (reply->location == NULL || header_add(response, "Location", reply->location)) &&
           (reply->cookie[0] == '\0' || header_add(response, "Set-Cookie", reply->cookie)) &&
           /* whatever follows is not wanted */
           ((reply->status != 403 && reply->status != 405) ||
            header_add(response, "Connection", "close"));
}

static enum MHD_Result send_reply(dt_web_site *site, struct MHD_Connection *connection,
                                  dt_web_reply *reply, sending *parts)
{
    struct MHD_Response *response = response_of(reply, parts);
    enum MHD_Result result = MHD_NO; /* the connection is closed */

    if (response == NULL) {
        free(reply->owned);
        if (parts != NULL)
            sending_free(parts);
        return MHD_NO;
    }
    if (headers_add(response, reply)) {
        set_phase(site, dt_web_guest_of(connection), DT_WEB_ANSWERING);
        result = MHD_queue_response(connection, (unsigned)reply->status, response);
    }
    MHD_destroy_response(response);
    return result;
}

/* --- from the request to the reply */

static enum MHD_Result count_host(void *count, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    if (strcasecmp(name, "Host") == 0)
        ++*(int *)count;
    return MHD_YES;
}

/* Whether the request passes; else the reply says why not. */
static bool gate_passes(dt_web_site *site, struct MHD_Connection *connection, const char *method,
                        dt_web_reply *reply)
{
    int status, host_count = 0;
    const char *reason;

    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &host_count);
    status =
        dt_web_gate(method, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"),
                    host_count, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin"),
                    site->listener.port, site->listener.address, &reason);
    if (status != 0)
        reply_error(reply, status, reason);
    return status == 0;
}

static dt_status page_make(const dt_web_route *route, dt_web_request *request, dt_web_reply *reply,
                           sending **parts, dt_web_site *site, dt_error *err)
{
    dt_web_handle *handle = NULL;
    dt_status st = DT_OK;

    if (route->cost != DT_WEB_NO_STORE) {
        DT_TRY(dt_web_stores_take(&handle, &site->stores,
                                  route->cost == DT_WEB_MUCH ? DT_WEB_EXPENSIVE : DT_WEB_CHEAP,
                                  err));
        request->store = handle->store;
    }
    DT_TRY(route->page(request, reply, err));
    if (reply->stream.next != NULL)
        DT_TRY(stream_begin(parts, site, dt_web_guest_of(request->connection), reply,
                            request->store, err));
out:
    if (handle != NULL)
        dt_web_stores_give_back(&site->stores, handle);
    if (reply->stream.free != NULL)
        reply->stream.free(reply->stream.state);
    return st;
}

/* Where a link leads once it has done its work: to a page that the routes know, and nowhere else.
 */
static const char *place_of(const dt_web_request *request)
{
    static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    const char *place = NULL;

    if (request->run[0] != '\0' && request->run[strspn(request->run, plain)] == '\0')
        place = dt_arena_printf(request->arena, "/runs/%s", request->run);
    return place != NULL ? place : "/";
}

/* Browsers keep cookies by host, whatever the port: each server's has its port in its name. */
static void cookie_name(char *out, size_t size, const dt_web_site *site)
{
    snprintf(out, size, "dtrun-%d", site->listener.port);
}

/* Whether who asks may see it; else the reply says what to do. */
static bool may_enter(dt_web_site *site, const dt_web_request *request, const dt_web_route *route,
                      dt_web_reply *reply)
{
    struct MHD_Connection *connection = request->connection;
    char name[32];
    dt_web_knock knock = {
        .open = route->door == DT_WEB_OPEN,
        .page = route->door == DT_WEB_PAGE,
        .link = dt_web_argument(request, "token"),
        .authorization = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization")};
    dt_web_entry entry;

    cookie_name(name, sizeof(name), site);
    knock.cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, name);
    entry = dt_web_entry_of(&knock, site->token);
    if (entry == DT_WEB_ENTER)
        return true;
    if (entry == DT_WEB_WELCOME) {
        dt_web_reply_file(reply, 303, "locked.html");
        reply->location = place_of(request);
        DT_ASSERT(snprintf(reply->cookie, sizeof(reply->cookie),
                           "%s=%s; Path=/; Max-Age=31536000; HttpOnly; SameSite=Strict", name,
                           site->token) < (int)sizeof(reply->cookie));
    } else if (knock.page) {
        dt_web_reply_file(reply, entry == DT_WEB_ANONYMOUS ? 401 : 403, "locked.html");
    } else {
        reply_error(reply, entry == DT_WEB_ANONYMOUS ? 401 : 403,
                    entry == DT_WEB_ANONYMOUS
                        ? "this needs the server's token: open the link that 'dtrun serve --link' "
                          "prints, or send 'Authorization: Bearer' with what is in serve.token of "
                          "its state folder"
                        : "this is not the server's token ('dtrun serve --link' prints its link)");
    }
    return false;
}

static enum MHD_Result answer(dt_web_site *site, struct MHD_Connection *connection,
                              const char *path)
{
    dt_arena arena;
    dt_web_request request = {.arena = &arena,
                              .folder = site->folder,
                              .now_ms = dt_clock_wall_ms(),
                              .connection = connection};
    dt_error err = DT_ERROR_INIT;
    dt_web_reply reply = {0};
    const dt_web_route *route;
    enum MHD_Result result;
    sending *parts = NULL;
    dt_status st;

    dt_arena_init(&arena, 0);
    route = dt_web_route_find(&request, path);
    if (may_enter(site, &request, route, &reply)) {
        st = page_make(route, &request, &reply, &parts, site, &err);
        if (st != DT_OK) /* messages name paths and runs, which are not for everybody */
            reply_error(&reply, http_status(st),
                        route->door == DT_WEB_OPEN ? "the run store cannot be read" : err.message);
    }
    result = send_reply(site, connection, &reply, parts);
    dt_arena_release(&arena);
    return result;
}

enum MHD_Result dt_web_answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_bytes, void **seen)
{
    dt_web_site *site = context;
    dt_web_reply reply = {0};

    if (*seen == NULL) {
        *seen = site;
        return gate_passes(site, connection, method, &reply)
                   ? MHD_YES
                   : send_reply(site, connection, &reply, NULL);
    }
    if (*body_bytes > 0) { /* nobody reads it */
        *body_bytes = 0;
        return MHD_YES;
    }
    set_phase(site, dt_web_guest_of(connection), DT_WEB_WORKING);
    return answer(site, connection, path);
}
