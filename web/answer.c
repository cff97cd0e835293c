/* answer: sends replies, at once or in parts, and turns requests into them. */
#include "web/web_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "web/access.h"

/* --- sending */

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

dt_web_client *dt_web_client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

static void web_set_phase(dt_web_site *site, dt_web_client *client, dt_web_phase phase)
{
    if (client != NULL)
        dt_web_admission_phase(&site->admission, client, phase);
}

/* --- streamed answers */

struct dt_web_parts {
    dt_web_site *site;
    dt_web_client *client;
    dt_web_stream stream;
    dt_strbuf part;
    size_t at; /* bytes of the part that were sent */
    bool more;
};

static void parts_free(void *context)
{
    dt_web_parts *s = context;

    if (s->stream.free != NULL)
        s->stream.free(s->stream.state);
    dt_strbuf_release(&s->part);
    free(s);
}

static dt_status part_make(dt_web_parts *s, dt_store *store, dt_error *err)
{
    dt_strbuf_reset(&s->part);
    s->at = 0;
    return s->stream.next(s->stream.state, store, &s->part, &s->more, err);
}

static dt_status part_next(dt_web_parts *s, dt_error *err)
{
    dt_web_handle *handle;
    dt_status st;

    /* The stream takes a handle of the store when there is something to read. */
    if (s->stream.waits)
        return part_make(s, NULL, err);
    st = dt_web_stores_take(&handle, &s->site->stores, DT_WEB_EXPENSIVE, err);

    if (st != DT_OK)
        return st;
    st = part_make(s, handle->store, err);
    dt_web_stores_give_back(&s->site->stores, handle);
    return st;
}

/* MHD's reader: copies the rest of the current part, or makes the next part. */
static ssize_t part_read(void *context, uint64_t position, char *out, size_t most)
{
    dt_error err = DT_ERROR_INIT;
    dt_web_parts *s = context;
    size_t left;

    while (s->at == s->part.length && s->more) {
        web_set_phase(s->site, s->client, DT_WEB_WORKING);
        if (part_next(s, &err) != DT_OK) {
            dt_log_warn("a response was aborted: %s", err.message);
            return MHD_CONTENT_READER_END_WITH_ERROR;
        }
        web_set_phase(s->site, s->client, DT_WEB_ANSWERING);
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

/* Takes over the reply's stream and makes its first part, so that an error can still be sent as the answer. *out is
 * NULL if the first part is the whole answer. */
static dt_status web_parts_begin(dt_web_parts **out, dt_web_site *site, dt_web_client *client,
                                 dt_web_reply *reply, dt_store *store, dt_error *err)
{
    dt_web_parts *s = dt_calloc(1, sizeof(*s));
    dt_status st;

    *out = NULL;
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
    parts_free(s);
    return st;
}

/* --- replies */

static struct MHD_Response *response_of(dt_web_reply *reply, dt_web_parts *parts)
{
    if (parts != NULL)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, DT_WEB_PART_BYTES, part_read,
                                                 parts, parts_free);
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

static bool file_name_add(struct MHD_Response *response, const char *name)
{
    char text[96];

    snprintf(text, sizeof(text), "attachment; filename=\"%s\"", name);
    return header_add(response, "Content-Disposition", text);
}

static bool headers_add(struct MHD_Response *response, const dt_web_reply *reply)
{
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        if (!header_add(response, headers[i].name, headers[i].value))
            return false;
    return header_add(response, "Content-Type", reply->type) &&
           (reply->status != 405 ||
            header_add(response, "Allow", reply->allow != NULL ? reply->allow : "GET, HEAD")) &&
           (reply->status != 503 || header_add(response, "Retry-After", "1")) &&
           (reply->status != 401 || header_add(response, "WWW-Authenticate", "Bearer")) &&
           (reply->file_name == NULL || file_name_add(response, reply->file_name)) &&
           (reply->location == NULL || header_add(response, "Location", reply->location)) &&
           (reply->cookie[0] == '\0' || header_add(response, "Set-Cookie", reply->cookie)) &&
           /* the connection is closed: no further request is accepted */
           ((reply->status != 403 && reply->status != 405 && !reply->close) ||
            header_add(response, "Connection", "close"));
}

enum MHD_Result dt_web_respond(dt_web_site *site, struct MHD_Connection *connection,
                               dt_web_reply *reply, dt_web_parts *parts)
{
    struct MHD_Response *response = response_of(reply, parts);
    enum MHD_Result result = MHD_NO; /* the connection is closed */

    if (response == NULL) {
        free(reply->owned);
        if (parts != NULL)
            parts_free(parts);
        return MHD_NO;
    }
    if (headers_add(response, reply)) {
        web_set_phase(site, dt_web_client_of(connection), DT_WEB_ANSWERING);
        result = MHD_queue_response(connection, (unsigned)reply->status, response);
    }
    MHD_destroy_response(response);
    return result;
}

/* --- from a request to its reply */

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

/* Replaces the reply by an error as JSON. */
static void reply_error(dt_web_reply *reply, int status, const char *message)
{
    reply->file_name = NULL;
    /* The message can repeat any bytes of the request. */
    dt_web_reply_json(
        reply, status,
        json_pack("{s{si so}}", "error", "status", status, "message", dt_web_string_json(message)),
        NULL);
}

/* --- from the request to the reply */

typedef struct header_check {
    unsigned seen;
    const dt_web_head_fault *fault;
} header_check;

static enum MHD_Result check_header(void *context, enum MHD_ValueKind kind, const char *name,
                                    size_t name_bytes, const char *value, size_t value_bytes)
{
    header_check *check = context;

    check->fault = dt_web_header_fault(&check->seen, name, name_bytes, value, value_bytes);
    return check->fault == NULL ? MHD_YES : MHD_NO;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* The port is part of the cookie's name, since browsers keep cookies by host alone: servers on
 * other ports must not replace this server's cookie. */
static void cookie_name(char *out, size_t size, const dt_web_site *site)
{
    snprintf(out, size, "dtrun-%d", site->listener.port);
}

static const dt_web_head_fault *change_fault(const dt_web_site *site,
                                             struct MHD_Connection *connection)
{
    char name[32];

    cookie_name(name, sizeof(name), site);
    return dt_web_change_fault(&(dt_web_change_head){
        .type = header_of(connection, "Content-Type"),
        .length = header_of(connection, "Content-Length"),
        .origin = header_of(connection, "Origin"),
        .site = header_of(connection, "Sec-Fetch-Site"),
        .cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, name) != NULL});
}

/* Returns true for a request that may change something: POST to a server that writes. */
static bool is_change(const dt_web_site *site, const char *method)
{
    return site->changes != NULL && strcmp(method, "POST") == 0;
}

/* Returns true if the gate and the checks of the head accept the request; else fills the reply
 * with the reason. `fault`: that of the URI, or NULL. */
static bool gate_passes(dt_web_site *site, struct MHD_Connection *connection, const char *method,
                        const dt_web_head_fault *fault, dt_web_reply *reply)
{
    bool change = is_change(site, method);
    header_check check = {.fault = fault, .seen = change ? DT_WEB_MAY_HAVE_BODY : 0};
    const char *reason = NULL;
    int status;

    status = dt_web_gate(change ? "GET" : method,
                         MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"),
                         MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin"),
                         site->listener.port, site->listener.address, &reason);
    if (status == 0 && check.fault == NULL)
        MHD_get_connection_values_n(connection, MHD_HEADER_KIND, check_header, &check);
    if (status == 0 && check.fault == NULL && change)
        check.fault = change_fault(site, connection);
    if (status == 0 && check.fault != NULL) {
        status = check.fault->status;
        reason = check.fault->reason;
        reply->close = true;
    }
    if (status != 0)
        reply_error(reply, status, reason);
    return status == 0;
}

/* A list by the values of keys reads every run. */
static bool reads_much(const dt_web_route *route, const dt_web_request *request)
{
    return route->cost == DT_WEB_MUCH || dt_web_argument(request, "filter") != NULL ||
           dt_web_argument(request, "sort") != NULL;
}

static dt_status page_make(const dt_web_route *route, dt_web_request *request, dt_web_reply *reply,
                           dt_web_parts **parts, dt_web_site *site, dt_error *err)
{
    dt_web_handle *handle = NULL;
    dt_status st = DT_OK;

    if (route->cost != DT_WEB_NO_STORE) {
        DT_TRY(dt_web_stores_take(&handle, &site->stores,
                                  reads_much(route, request) ? DT_WEB_EXPENSIVE : DT_WEB_CHEAP,
                                  err));
        request->store = handle->store;
    }
    DT_TRY(route->page(request, reply, err));
    if (reply->stream.next != NULL)
        DT_TRY(web_parts_begin(parts, site, dt_web_client_of(request->connection), reply,
                               request->store, err));
out:
    if (handle != NULL)
        dt_web_stores_give_back(&site->stores, handle);
    if (reply->stream.free != NULL)
        reply->stream.free(reply->stream.state);
    return st;
}

/* Appends text to a query string, with every character but letters and digits as %XX. */
static void add_escaped(dt_strbuf *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if ((*c < 0x80 && isalnum(*c)) || strchr("-_.~,", *c) != NULL)
            dt_strbuf_add_char(out, (char)*c);
        else
            dt_strbuf_add_fmt(out, "%%%02X", *c);
}

static enum MHD_Result add_argument(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    dt_strbuf *out = context;

    if (strcmp(name, "token") == 0)
        return MHD_YES;
    dt_strbuf_add_char(out, strchr(out->data, '?') == NULL ? '?' : '&');
    add_escaped(out, name);
    if (value != NULL) {
        dt_strbuf_add_char(out, '=');
        add_escaped(out, value);
    }
    return MHD_YES;
}

/* Returns the address that an opened link redirects to: the page of the route, with all
 * arguments but the token. The path comes from the route table or names a run, never from other
 * text of the request. */
static const char *redirect_target(const dt_web_request *request, const dt_web_route *route)
{
    static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    bool run = request->run[0] != '\0' && request->run[strspn(request->run, plain)] == '\0';
    const char *place;
    dt_strbuf out;

    dt_strbuf_init(&out);
    if (run)
        dt_strbuf_add_fmt(&out, "/runs/%s", request->run);
    else
        dt_strbuf_add_str(
            &out, route->pattern[0] != '\0' && request->run[0] == '\0' ? route->pattern : "/");
    MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, add_argument, &out);
    place = dt_arena_strdup(request->arena, out.data);
    dt_strbuf_release(&out);
    return place;
}

/* What a client may do, by the tokens that it has sent. */
typedef struct admitted {
    dt_web_entry entry;
    const char *token; /* for the cookie; NULL: none */
    bool writes;
} admitted;

static admitted admit(const dt_web_site *site, const dt_web_access_request *access)
{
    admitted out = {.entry = dt_web_entry_of(access, site->token), .token = site->token};
    dt_web_access_request closed = *access;
    dt_web_entry writer;

    if (site->token == NULL) { /* a Unix socket, which only this user can open */
        out.writes = true;
        return out;
    }
    if (site->write_token == NULL)
        return out;
    writer = dt_web_entry_of(access, site->write_token);
    if (writer == DT_WEB_ENTER || writer == DT_WEB_SET_COOKIE)
        out = (admitted){.entry = writer, .token = site->write_token};
    closed.open = closed.page = false;
    out.writes = dt_web_entry_of(&closed, site->write_token) == DT_WEB_ENTER;
    return out;
}

static void refuse_token(dt_web_reply *reply, dt_web_entry entry, bool page)
{
    int status = entry == DT_WEB_ANONYMOUS ? 401 : 403;

    if (page)
        dt_web_reply_file(reply, status, "locked.html");
    else
        reply_error(reply, status,
                    entry == DT_WEB_ANONYMOUS
                        ? "this needs the server's token: open the link that 'dtrun serve --link' "
                          "prints, or send 'Authorization: Bearer' with the contents of "
                          "serve.token in its state folder"
                        : "this is not the server's token ('dtrun serve --link' prints its link)");
}

/* Returns true if the client may see the resource, and sets what it may do; else fills the reply with the remedy. */
static bool may_enter(dt_web_site *site, dt_web_request *request, const dt_web_route *route,
                      dt_web_reply *reply)
{
    struct MHD_Connection *connection = request->connection;
    char name[32];
    dt_web_access_request access = {.open = route->door == DT_WEB_OPEN,
                                    .page = route->door == DT_WEB_PAGE,
                                    .link = dt_web_argument(request, "token"),
                                    .authorization = header_of(connection, "Authorization")};
    admitted client;

    cookie_name(name, sizeof(name), site);
    access.cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, name);
    client = admit(site, &access);
    request->may_write = client.writes && site->changes != NULL;
    if (client.entry == DT_WEB_ENTER)
        return true;
    if (client.entry != DT_WEB_SET_COOKIE) {
        refuse_token(reply, client.entry, access.page);
        return false;
    }
    dt_web_reply_file(reply, 303, "locked.html");
    reply->location = redirect_target(request, route);
    DT_ASSERT(snprintf(reply->cookie, sizeof(reply->cookie),
                       "%s=%s; Path=/; Max-Age=31536000; HttpOnly; SameSite=Strict", name,
                       client.token) < (int)sizeof(reply->cookie));
    return false;
}

/* Returns true if the method fits the route, and the client may write what it changes; else fills the reply. */
static bool may_change(const dt_web_route *route, const dt_web_request *request, bool change,
                       dt_web_reply *reply)
{
    bool wanted = route->door == DT_WEB_WRITE;

    if (change == wanted && (!change || request->may_write))
        return true;
    if (change && wanted) {
        reply_error(reply, 403,
                    "this token only reads: open the link that 'dtrun serve --write' prints, or "
                    "send the contents of serve.write-token");
        return false;
    }
    if (wanted && request->changes == NULL) {
        reply_error(reply, 404, "this server changes nothing ('dtrun serve --write')");
        return false;
    }
    reply->allow = wanted ? "POST" : NULL;
    reply_error(reply, 405, wanted ? "this address takes POST" : "this address takes GET and HEAD");
    return false;
}

static enum MHD_Result answer(dt_web_site *site, struct MHD_Connection *connection,
                              const char *path, bool change)
{
    dt_web_client *client = dt_web_client_of(connection);
    dt_arena arena;
    dt_web_request request = {.arena = &arena,
                              .folder = site->folder,
                              .now_ms = dt_clock_wall_ms(),
                              .connection = connection,
                              .live = &site->live,
                              .commands = &site->commands,
                              .changes = site->changes};
    dt_error err = DT_ERROR_INIT;
    dt_web_reply reply = {0};
    const dt_web_route *route;
    enum MHD_Result result;
    dt_web_parts *parts = NULL;
    dt_status st;

    if (client != NULL && client->body != NULL) {
        request.body = client->body->data;
        request.body_bytes = client->body->length;
    }
    dt_arena_init(&arena, 0);
    route = dt_web_route_find(&request, path);
    if (may_enter(site, &request, route, &reply) && may_change(route, &request, change, &reply)) {
        st = page_make(route, &request, &reply, &parts, site, &err);
        if (st != DT_OK) /* messages name paths and runs, which a public route must not show */
            reply_error(&reply, http_status(st),
                        route->door == DT_WEB_OPEN ? "the run store cannot be read" : err.message);
    }
    result = dt_web_respond(site, connection, &reply, parts);
    dt_arena_release(&arena);
    return result;
}

/* Sends an answer before MHD parses the arguments: MHD stores an entry of about 70 bytes for
 * each, and closes the connection without an answer if they do not fit into its memory. */
static void send_too_long(struct MHD_Connection *connection, const dt_web_head_fault *fault)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char text[256];
    int length =
        snprintf(text, sizeof(text),
                 "HTTP/1.1 414 URI Too Long\r\nConnection: close\r\nContent-Type: text/plain\r\n"
                 "Content-Length: %zu\r\n\r\n%s\n",
                 strlen(fault->reason) + 1, fault->reason);

    if (info == NULL)
        return;
    (void)!send(info->connect_fd, text, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(info->connect_fd, SHUT_WR);
}

void *dt_web_uri_seen(void *context, const char *uri, struct MHD_Connection *connection)
{
    /* MHD has put a NUL byte between the URI and the version. If another text follows, the client sent a NUL byte. */
    const dt_web_head_fault *fault = strncmp(uri + strlen(uri) + 1, "HTTP/", 5) != 0
                                         ? &dt_web_nul_in_uri
                                         : dt_web_uri_fault(uri);

    if (fault != NULL && fault->status == 414)
        send_too_long(connection, fault);
    return (void *)(uintptr_t)fault;
}

/* Appends to the body of the request. Its length was checked before. */
static void body_take(dt_web_client *client, const char *bytes, size_t length)
{
    if (client == NULL)
        return;
    if (client->body == NULL) {
        client->body = dt_calloc(1, sizeof(*client->body));
        dt_strbuf_init(client->body);
    }
    if (client->body->length + length <= DT_WEB_BODY_BYTES_MAX)
        dt_strbuf_add(client->body, bytes, length);
}

void dt_web_body_drop(dt_web_client *client)
{
    if (client == NULL || client->body == NULL)
        return;
    dt_strbuf_release(client->body);
    free(client->body);
    client->body = NULL;
}

enum MHD_Result dt_web_answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_bytes, void **seen)
{
    dt_web_site *site = context;
    dt_web_reply reply = {0};

    /* The first call for this request: *seen is what dt_web_uri_seen returned. */
    if (*seen != site) {
        const dt_web_head_fault *fault = *seen;

        *seen = site;
        return gate_passes(site, connection, method, fault, &reply)
                   ? MHD_YES
                   : dt_web_respond(site, connection, &reply, NULL);
    }
    if (*body_bytes > 0) {
        if (is_change(site, method))
            body_take(dt_web_client_of(connection), body, *body_bytes);
        *body_bytes = 0; /* that of another request is discarded */
        return MHD_YES;
    }
    web_set_phase(site, dt_web_client_of(connection), DT_WEB_WORKING);
    return answer(site, connection, path, is_change(site, method));
}
