/* server: from a connection to the gate, the route, and back.
 *
 *   connection -> gate (method, Host, Origin) -> route (one table) -> page -> headers -> answer
 */
#define _GNU_SOURCE
#include "web/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/place.h"
#include "web/gate.h"
#include "web/listen.h"
#include "web/routes.h"
#include "web/run_json.h"

#include "base/banned.h"

#define CONNECTIONS_MOST   64
#define IDLE_SECONDS       15
#define REQUEST_HEAD_BYTES ((size_t)32 << 10) /* a request line and headers over it: 431 or 414 */

typedef struct server {
    dt_store *store;
    const char *folder;
    dt_arena arena; /* of the request that is being answered */
    dt_web_listener listener;
    struct MHD_Daemon *daemon;
} server;

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

static enum MHD_Result send_reply(struct MHD_Connection *connection, dt_web_reply *reply)
{
    enum MHD_Result result = MHD_NO;
    struct MHD_Response *response = NULL;

    if (reply->owned != NULL)
        response =
            MHD_create_response_from_buffer(reply->length, reply->owned, MHD_RESPMEM_MUST_FREE);
    else if (reply->bytes != NULL)
        response = MHD_create_response_from_buffer(reply->length, (void *)(uintptr_t)reply->bytes,
                                                   MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        free(reply->owned);
        return MHD_NO; /* the connection is closed */
    }
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        if (MHD_add_response_header(response, headers[i].name, headers[i].value) != MHD_YES)
            goto out;
    if (MHD_add_response_header(response, "Content-Type", reply->type) != MHD_YES ||
        (reply->status == 405 &&
         MHD_add_response_header(response, "Allow", "GET, HEAD") != MHD_YES) ||
        ((reply->status == 403 || reply->status == 405) && /* whatever follows is not wanted */
         MHD_add_response_header(response, "Connection", "close") != MHD_YES))
        goto out;
    result = MHD_queue_response(connection, (unsigned)reply->status, response);
out:
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result count_host(void *count, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    if (strcasecmp(name, "Host") == 0)
        ++*(int *)count;
    return MHD_YES;
}

/* Whether the request passes; else the reply says why not. */
static bool gate_passes(server *web, struct MHD_Connection *connection, const char *method,
                        dt_web_reply *reply)
{
    int status, host_count = 0;
    const char *reason;

    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &host_count);
    status =
        dt_web_gate(method, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"),
                    host_count, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin"),
                    web->listener.port, web->listener.address, &reason);
    if (status != 0)
        reply_error(reply, status, reason);
    return status == 0;
}

static void answer(server *web, struct MHD_Connection *connection, const char *path,
                   dt_web_reply *reply)
{
    dt_web_request request = {.store = web->store,
                              .arena = &web->arena,
                              .folder = web->folder,
                              .now_ms = dt_clock_wall_ms(),
                              .connection = connection};
    dt_error err = DT_ERROR_INIT;
    dt_status st = dt_web_route(&request, path)(&request, reply, &err);

    if (st != DT_OK)
        reply_error(reply, http_status(st), err.message);
}

/* Called once with the headers, which is when the gate decides; then again until the body, if
 * any, is through. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *body, size_t *body_bytes, void **seen)
{
    server *web = context;
    dt_web_reply reply = {0};

    if (*seen == NULL) {
        *seen = web;
        return gate_passes(web, connection, method, &reply) ? MHD_YES
                                                            : send_reply(connection, &reply);
    }
    if (*body_bytes > 0) { /* nobody reads it */
        *body_bytes = 0;
        return MHD_YES;
    }
    answer(web, connection, path, &reply);
    dt_arena_reset(&web->arena);
    return send_reply(connection, &reply);
}

static dt_status loop(server *web, int stop_fd, dt_error *err)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd fds[2] = {{.fd = info->epoll_fd, .events = POLLIN},
                            {.fd = stop_fd, .events = POLLIN}};

    for (;;) {
        MHD_UNSIGNED_LONG_LONG wait_ms;
        int timeout_ms = -1;

        if (MHD_get_timeout(web->daemon, &wait_ms) == MHD_YES)
            timeout_ms = wait_ms > 1000 ? 1000 : (int)wait_ms;
        if (poll(fds, 2, timeout_ms) < 0 && errno != EINTR)
            return DT_FAIL(err, DT_ERR_IO, "cannot wait for requests: %s", strerror(errno));
        if (fds[1].revents != 0)
            return DT_OK;
        if (MHD_run(web->daemon) != MHD_YES)
            return DT_FAIL(err, DT_ERR_IO, "cannot answer requests: the server has failed");
    }
}

/* The store's folder: all that is served beside the store is below it. */
static dt_status folder_find(server *web, const char *store_path, dt_arena *arena, dt_error *err)
{
    const char *slash;

    if (store_path == NULL)
        return dt_place_dir(&web->folder, DT_PLACE_STATE, arena, err);
    slash = strrchr(store_path, '/');
    web->folder =
        slash == NULL ? "." : dt_arena_strndup(arena, store_path, (size_t)(slash - store_path));
    return web->folder != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "cannot serve: no memory");
}

dt_status dt_web_serve(const dt_web_options *options, dt_error *err)
{
    server web = {.listener = {.fd = -1}};
    dt_status st = DT_OK;
    dt_arena arena;
    char url[96];

    dt_arena_init(&arena, 0);
    dt_arena_init(&web.arena, 0);
    DT_TRY(folder_find(&web, options->store_path, &arena, err));
    DT_TRY(dt_web_listen(&web.listener,
                         options->listen != NULL ? options->listen : DT_WEB_LISTEN_DEFAULT, err));
    DT_TRY(dt_store_open(&web.store, options->store_path, err));
    web.daemon =
        MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, &web, MHD_OPTION_LISTEN_SOCKET,
                         web.listener.fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MOST,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_HEAD_BYTES, MHD_OPTION_END);
    if (web.daemon == NULL)
        DT_THROW(err, DT_ERR_IO, "cannot serve: the HTTP server does not start");
    snprintf(url, sizeof(url), "http://%s:%d/", web.listener.address, web.listener.port);
    if (options->listening != NULL)
        options->listening(options->context, url);
    DT_TRY(loop(&web, options->stop_fd, err));
out:
    if (web.daemon != NULL)
        MHD_stop_daemon(web.daemon); /* closes the listening socket */
    else if (web.listener.fd >= 0)
        close(web.listener.fd);
    dt_store_close(web.store);
    dt_arena_release(&web.arena);
    dt_arena_release(&arena);
    return st;
}
