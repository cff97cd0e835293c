/* server: accepts connections and gives each to a thread of the HTTP library (libmicrohttpd).
 *
 * The server accepts connections itself: at its connection limit, libmicrohttpd 0.9.75 removes the listening socket
 * from its epoll set, and adds it again only when another event wakes the daemon. If all its connections end in one
 * round no such event comes, and the daemon never accepts again. Here, one loop polls the socket and decides which
 * connections are accepted (listen.h), and never waits for another thread.
 * Each connection has its own thread, so that a client that sends or reads slowly delays only itself.
 */
#include "web/server.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/log.h"
#include "web/web_int.h"

#define THREAD_STACK_BYTES ((size_t)512 << 10)
#define REQUEST_BYTES      ((size_t)128 << 10) /* a head and its parsed entries: access.h; else 431 */
#define ACCEPTS_MOST       64                  /* per round, before deadlines are checked */
#define LOOK_MS            500                 /* interval of checking deadlines */
#define PAUSE_MS           100                 /* pause when there is no place or descriptor */
#define PENDING_SECONDS    2.0                 /* a pending connection is closed after this time */

typedef struct server {
    dt_web_site site;
    struct MHD_Daemon *daemon;
    int wake;     /* an eventfd, written when a client has left */
    int pending;  /* an accepted connection that waits for a place; -1: none */
    double since; /* when it was accepted */
    struct sockaddr_storage address;
    socklen_t address_bytes;
} server;

static void on_connection(void *context, struct MHD_Connection *connection, void **client,
                          enum MHD_ConnectionNotificationCode what)
{
    server *web = context;
    const union MHD_ConnectionInfo *info;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *client = dt_web_admission_claim(&web->site.admission, info->connect_fd);
    } else if (*client != NULL) {
        dt_web_admission_leave(&web->site.admission, *client);
        *client = NULL;
        (void)eventfd_write(web->wake, 1);
    }
}

/* Marks the client as ready for the next request on its connection. */
static void on_completed(void *context, struct MHD_Connection *connection, void **seen,
                         enum MHD_RequestTerminationCode why)
{
    dt_web_client *client = dt_web_client_of(connection);
    server *web = context;

    dt_web_body_drop(client);
    if (client != NULL)
        dt_web_admission_phase(&web->site.admission, client, DT_WEB_ASKING);
}

static struct in6_addr address_of(const struct sockaddr_storage *any)
{
    struct in6_addr out;

    memset(&out, 0, sizeof(out)); /* for a Unix socket */
    if (any->ss_family == AF_INET6)
        out = ((const struct sockaddr_in6 *)any)->sin6_addr;
    else if (any->ss_family == AF_INET)
        memcpy(&out, &((const struct sockaddr_in *)any)->sin_addr, 4);
    return out;
}

/* Gives the pending connection to the library. Returns false while all places are taken. */
static bool pending_enter(server *web)
{
    struct in6_addr address = address_of(&web->address);
    dt_web_client *client = dt_web_admission_enter(&web->site.admission, web->pending, &address);
    int fd = web->pending;

    if (client == NULL)
        return false;
    web->pending = -1;
    if (MHD_add_connection(web->daemon, fd, (const struct sockaddr *)&web->address,
                           web->address_bytes) == MHD_YES)
        return true;
    /* out of memory or threads: the library has closed the connection; another one is closed to
     * make room for the next */
    dt_web_admission_shrink(&web->site.admission);
    client = dt_web_admission_claim(&web->site.admission, fd);
    if (client != NULL)
        dt_web_admission_leave(&web->site.admission, client);
    return true;
}

/* Accepts a waiting connection. Returns false if none is waiting, or if it cannot be accepted now. */
static bool accept_next(server *web)
{
    for (int i = 0; i < ACCEPTS_MOST; i++) {
        if (web->pending < 0) {
            web->address_bytes = sizeof(web->address);
            web->pending = accept4(web->site.listener.fd, (struct sockaddr *)&web->address,
                                   &web->address_bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
            web->since = dt_clock_monotonic_seconds();
        }
        if (web->pending < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return true;
        if (web->pending < 0 &&
            (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            dt_web_admission_shrink(&web->site.admission);
            return false;
        }
        if (web->pending >= 0 && !pending_enter(web)) {
            if (dt_clock_monotonic_seconds() - web->since < PENDING_SECONDS)
                return false;
            close(web->pending);
            web->pending = -1;
        }
    }
    return true;
}

static dt_status loop(server *web, int stop_fd, dt_error *err)
{
    struct pollfd fds[3] = {{.fd = web->site.listener.fd, .events = POLLIN},
                            {.fd = stop_fd, .events = POLLIN},
                            {.fd = web->wake, .events = POLLIN}};
    bool open = true;
    eventfd_t gone;

    for (;;) {
        bool clients = dt_web_admission_sweep(&web->site.admission);

        fds[0].events = open ? POLLIN : 0;
        if (poll(fds, 3, !open ? PAUSE_MS : clients ? LOOK_MS : -1) < 0 && errno != EINTR)
            return DT_FAIL(err, DT_ERR_IO, "cannot wait for requests: %s", strerror(errno));
        if (fds[1].revents != 0)
            return DT_OK;
        (void)eventfd_read(web->wake, &gone);
        open = accept_next(web);
    }
}

/* Returns the store's folder, which contains all other served files. */
static dt_status folder_find(const char **folder, const char **store_path, dt_arena *arena,
                             dt_error *err)
{
    dt_status st = DT_OK;
    const char *slash;

    if (*store_path == NULL) {
        /* The folder may be on a read-only file system. */
        if (dt_dir_make(folder, DT_DIR_STATE, arena, NULL) != DT_OK)
            DT_TRY(dt_dir_path(folder, DT_DIR_STATE, arena, err));
        *store_path = dt_arena_printf(arena, "%s/store.db", *folder);
    } else {
        slash = strrchr(*store_path, '/');
        *folder = slash == NULL
                      ? "."
                      : dt_arena_strndup(arena, *store_path, (size_t)(slash - *store_path));
    }
out:
    return st;
}

static dt_status daemon_start(server *web, dt_error *err)
{
    struct rlimit descriptors = {.rlim_cur = 1024};
    dt_web_limits limits;
    dt_status st;

    (void)getrlimit(RLIMIT_NOFILE, &descriptors);
    limits = dt_web_limits_of(descriptors.rlim_cur > (1 << 20) ? 1 << 20
                                                               : (long long)descriptors.rlim_cur);
    dt_web_admission_init(&web->site.admission, &limits);
    DT_TRY(dt_web_live_begin(&web->site.live, &web->site.stores, web->site.folder, limits.all / 2,
                             err));
    web->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (web->wake < 0)
        DT_THROW(err, DT_ERR_IO, "cannot serve: %s", strerror(errno));
    web->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC,
        0, NULL, NULL, dt_web_answer, &web->site, MHD_OPTION_NOTIFY_CONNECTION, on_connection, web,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, web, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(4 * DT_WEB_CLIENTS_MAX), /* above the server's own limit, which applies first */
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)DT_WEB_TAKE_SECONDS, MHD_OPTION_URI_LOG_CALLBACK,
        dt_web_uri_seen, (void *)NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_BYTES,
        MHD_OPTION_THREAD_STACK_SIZE, THREAD_STACK_BYTES, MHD_OPTION_END);
    if (web->daemon == NULL)
        st = DT_FAIL(err, DT_ERR_IO, "cannot serve: cannot start the HTTP server");
out:
    return st;
}

static void daemon_stop(server *web)
{
    dt_web_stores_end_waits(&web->site.stores);
    dt_web_live_end_waits(&web->site.live);
    atomic_store(&web->site.commands.closing, true);
    dt_web_changes_end_waits(web->site.changes);
    if (web->daemon != NULL)
        MHD_stop_daemon(web->daemon); /* closes all connections and waits for their threads */
    dt_web_live_end(&web->site.live);
    if (web->daemon != NULL)
        dt_web_admission_release(&web->site.admission);
}

static void close_when_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

dt_status dt_web_serve(const dt_web_options *options, dt_error *err)
{
    server web = {.site = {.listener = {.fd = -1}}, .wake = -1, .pending = -1};
    const char *store_path = options->store_path;
    dt_status st = DT_OK;
    dt_arena arena;
    char url[160];

    dt_arena_init(&arena, 0);
    pthread_mutex_init(&web.site.commands.checking, NULL);
    web.site.token = options->token;
    web.site.write_token = options->write_token;
    if (options->changes != NULL)
        DT_TRY(dt_web_changes_begin(&web.site.changes, options->changes, err));
    web.site.commands.rules = options->command;
    DT_TRY(folder_find(&web.site.folder, &store_path, &arena, err));
    DT_TRY(dt_web_listen(&web.site.listener,
                         options->listen != NULL ? options->listen : DT_WEB_LISTEN_DEFAULT, err));
    DT_TRY(dt_web_stores_open(&web.site.stores, store_path, err));
    DT_TRY(daemon_start(&web, err));
    dt_web_listener_url(url, sizeof(url), &web.site.listener);
    if (options->listening != NULL)
        options->listening(options->context, url);
    DT_TRY(loop(&web, options->stop_fd, err));
out:
    if (web.site.stores.path != NULL)
        daemon_stop(&web);
    close_when_open(web.pending);
    dt_web_listener_close(&web.site.listener);
    close_when_open(web.wake);
    dt_web_stores_close(&web.site.stores);
    dt_web_changes_end(web.site.changes);
    pthread_mutex_destroy(&web.site.commands.checking);
    dt_arena_release(&arena);
    return st;
}
