/* listen: the listening socket, and which connections are closed when there are too many. */
#include "web/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/* --- the socket */

#define BACKLOG 512 /* connections that wait in the kernel while the server is full */

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} any_address;

static dt_status port_parse(int *out, const char *text, const char *whole, dt_error *err)
{
    char *end;
    long port;

    errno = 0;
    port = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || port > 65535)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "cannot listen on '%s': '%s' is not a port (a number up to 65535)", whole,
                       text);
    *out = (int)port;
    return DT_OK;
}

/* Parses "HOST:PORT" into a socket address, its length and its text. DT_ERR_USAGE: malformed, or not loopback. */
static dt_status address_parse(any_address *address, socklen_t *length, dt_web_listener *out,
                               const char *text, dt_error *err)
{
    const char *colon = strrchr(text, ':');
    char host[48];
    dt_status st;

    if (colon == NULL ||
        snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text) >= (int)sizeof(host))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "cannot listen on '%s': expected an address and a port, as in "
                       "127.0.0.1:8642, or unix:PATH",
                       text);
    st = port_parse(&out->port, colon + 1, text, err);
    if (st != DT_OK)
        return st;
    if (strcmp(host, "localhost") == 0)
        snprintf(host, sizeof(host), "127.0.0.1");
    memset(address, 0, sizeof(*address));
    snprintf(out->address, sizeof(out->address), "%s", host);
    if (strcmp(host, "[::1]") == 0) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)out->port);
        address->v6.sin6_addr = in6addr_loopback;
        *length = sizeof(address->v6);
        return DT_OK;
    }
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons((uint16_t)out->port);
    *length = sizeof(address->v4);
    if (inet_pton(AF_INET, host, &address->v4.sin_addr) != 1 ||
        ntohl(address->v4.sin_addr.s_addr) >> 24 != 127)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "cannot listen on '%s': only this machine's own addresses (127.0.0.1, "
                       "[::1], localhost, unix:PATH) are served; from elsewhere use 'ssh -L'",
                       text);
    return DT_OK;
}

static bool somebody_listens(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* EAGAIN: there is a listener, and its queue is full */
    bool yes = fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
                           errno == EAGAIN);

    if (fd >= 0)
        close(fd);
    return yes;
}

/* Removes the stale socket of an earlier server. Fails if the file is not a socket, or if a process listens on it. */
static dt_status remove_stale(const struct sockaddr_un *address, dt_error *err)
{
    struct stat info;

    if (lstat(address->sun_path, &info) != 0)
        return DT_OK;
    if (!S_ISSOCK(info.st_mode))
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "cannot listen on 'unix:%s': it exists and is not a socket, give another path",
            address->sun_path);
    if (somebody_listens(address))
        return DT_FAIL(err, DT_ERR_BUSY,
                       "cannot listen on 'unix:%s': another process listens there, perhaps another "
                       "'dtrun serve' (give another path)",
                       address->sun_path);
    (void)unlink(address->sun_path); /* if it cannot be removed, bind fails and reports it */
    return DT_OK;
}

static dt_status listen_unix(dt_web_listener *out, const char *path, dt_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    dt_status st;

    if (path[0] == '\0' || strlen(path) >= sizeof(address.sun_path))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "cannot listen on 'unix:%s': expected a path of 1 to %zu bytes", path,
                       sizeof(address.sun_path) - 1);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    st = remove_stale(&address, err);
    if (st != DT_OK)
        return st;
    out->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* sets the mode before the socket has a name, so that no other user can connect in between */
    if (out->fd < 0 || fchmod(out->fd, 0600) != 0 ||
        bind(out->fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(path, 0600) != 0 || listen(out->fd, BACKLOG) != 0) {
        st = DT_FAIL(err, DT_ERR_IO, "cannot listen on 'unix:%s': %s", path, strerror(errno));
        if (out->fd >= 0)
            close(out->fd);
        out->fd = -1;
        return st;
    }
    snprintf(out->path, sizeof(out->path), "%s", path);
    return DT_OK;
}

void dt_web_listener_close(dt_web_listener *listener)
{
    if (listener->fd < 0)
        return;
    if (listener->path[0] != '\0')
        unlink(listener->path);
    close(listener->fd);
    listener->fd = -1;
}

void dt_web_listener_url(char *out, size_t size, const dt_web_listener *listener)
{
    if (listener->path[0] != '\0')
        snprintf(out, size, "unix:%s", listener->path);
    else
        snprintf(out, size, "http://%s:%d/", listener->address, listener->port);
}

dt_status dt_web_listen(dt_web_listener *out, const char *text, dt_error *err)
{
    any_address address;
    socklen_t length;
    dt_status st;
    int on = 1;

    *out = (dt_web_listener){.fd = -1};
    if (strncmp(text, "unix:", 5) == 0)
        return listen_unix(out, text + 5, err);
    st = address_parse(&address, &length, out, text, err);
    if (st != DT_OK)
        return st;
    out->fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (out->fd >= 0 && setsockopt(out->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(out->fd, &address.any, length) == 0 && listen(out->fd, BACKLOG) == 0 &&
        getsockname(out->fd, &address.any, &length) == 0) {
        out->port =
            ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
        return DT_OK;
    }
    if (errno == EADDRINUSE)
        st = DT_FAIL(err, DT_ERR_BUSY,
                     "cannot listen on '%s': the port is taken, perhaps by another 'dtrun serve' "
                     "(give another port, or 0 for any)",
                     text);
    else
        st = DT_FAIL(err, DT_ERR_IO, "cannot listen on '%s': %s", text, strerror(errno));
    if (out->fd >= 0)
        close(out->fd);
    out->fd = -1;
    return st;
}

/* --- admission */

enum {
    CLIENTS = DT_WEB_CLIENTS_MAX * 2,
    RESERVED = 40, /* descriptors of the program itself: store handles, the log, the terminal */
    LEAST = 4
};

dt_web_limits dt_web_limits_of(long long descriptors)
{
    /* a connection can have a log open in addition to its socket */
    long long room = (descriptors - RESERVED) / 2;
    int all = room > DT_WEB_CLIENTS_MAX ? DT_WEB_CLIENTS_MAX : room < LEAST ? LEAST : (int)room;

    /* One address may use three quarters of the connections: behind a proxy or a tunnel, all
     * clients on this machine share one address. */
    return (dt_web_limits){.all = all, .per_address = all - all / 4};
}

static bool same_address(const struct in6_addr *a, const struct in6_addr *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

bool dt_web_client_is_over(const dt_web_client *client, double now)
{
    return (client->phase == DT_WEB_ASKING && now - client->since >= DT_WEB_REQUEST_SECONDS) ||
           (client->phase == DT_WEB_ANSWERING && now - client->since >= DT_WEB_TAKE_SECONDS);
}

static bool may_leave(const dt_web_client *client, double now)
{
    return (client->phase == DT_WEB_ASKING && now - client->since >= DT_WEB_GRACE_SECONDS) ||
           (client->phase == DT_WEB_ANSWERING && now - client->since >= DT_WEB_STALLED_SECONDS);
}

/* Returns the client that has waited longest, preferring clients with an incomplete request to
 * clients that do not read their answer; DT_WEB_WAIT if none can be closed. address NULL: of all
 * addresses. */
static int longest(const dt_web_client *clients, int count, const struct in6_addr *address,
                   double now)
{
    int found = DT_WEB_WAIT;

    for (int i = 0; i < count; i++) {
        const dt_web_client *client = &clients[i];

        if (!may_leave(client, now) ||
            (address != NULL && !same_address(&client->address, address)))
            continue;
        if (found < 0 || client->phase < clients[found].phase ||
            (client->phase == clients[found].phase && client->since < clients[found].since))
            found = i;
    }
    return found;
}

int dt_web_admission_choose(const dt_web_client *clients, int count, const dt_web_limits *limits,
                            const struct in6_addr *newcomer, double now)
{
    int all = 0, of_address = 0, leaving = 0;

    for (int i = 0; i < count; i++) {
        if (clients[i].phase == DT_WEB_FREE)
            continue;
        if (clients[i].phase == DT_WEB_LEAVING) {
            leaving++;
            continue;
        }
        all++;
        of_address += same_address(&clients[i].address, newcomer);
    }
    if (all + leaving >= 2 * limits->all)
        return DT_WEB_WAIT; /* connections that are being closed have to end first */
    if (of_address >= limits->per_address)
        return longest(clients, count, newcomer, now);
    return all < limits->all ? DT_WEB_ADMIT : longest(clients, count, NULL, now);
}

void dt_web_admission_init(dt_web_admission *admission, const dt_web_limits *limits)
{
    memset(admission, 0, sizeof(*admission));
    pthread_mutex_init(&admission->lock, NULL);
    admission->limits = *limits;
}

void dt_web_admission_release(dt_web_admission *admission)
{
    pthread_mutex_destroy(&admission->lock);
}

/* Shuts the socket down. The thread of the connection then sees its end, and closes it. */
static void hang_up(dt_web_client *client)
{
    client->phase = DT_WEB_LEAVING;
    shutdown(client->fd, SHUT_RDWR);
}

static dt_web_client *free_place(dt_web_admission *admission)
{
    for (int i = 0; i < CLIENTS; i++)
        if (admission->clients[i].phase == DT_WEB_FREE)
            return &admission->clients[i];
    return NULL;
}

dt_web_client *dt_web_admission_enter(dt_web_admission *admission, int fd,
                                      const struct in6_addr *address)
{
    double now = dt_clock_monotonic_seconds();
    dt_web_client *place = NULL;
    int chosen;

    pthread_mutex_lock(&admission->lock);
    chosen = dt_web_admission_choose(admission->clients, CLIENTS, &admission->limits, address, now);
    if (chosen >= 0)
        hang_up(&admission->clients[chosen]);
    if (chosen != DT_WEB_WAIT)
        place = free_place(admission);
    if (place != NULL)
        *place =
            (dt_web_client){.phase = DT_WEB_ASKING, .since = now, .address = *address, .fd = fd};
    pthread_mutex_unlock(&admission->lock);
    return place;
}

dt_web_client *dt_web_admission_claim(dt_web_admission *admission, int fd)
{
    dt_web_client *found = NULL;

    pthread_mutex_lock(&admission->lock);
    for (int i = 0; i < CLIENTS && found == NULL; i++) {
        dt_web_client *client = &admission->clients[i];

        if (client->phase != DT_WEB_FREE && client->fd == fd && !client->claimed)
            found = client;
    }
    if (found != NULL)
        found->claimed = true;
    pthread_mutex_unlock(&admission->lock);
    return found;
}

void dt_web_admission_phase(dt_web_admission *admission, dt_web_client *client, dt_web_phase phase)
{
    pthread_mutex_lock(&admission->lock);
    if (client->phase != DT_WEB_LEAVING) {
        client->phase = phase;
        client->since = dt_clock_monotonic_seconds();
    }
    pthread_mutex_unlock(&admission->lock);
}

void dt_web_admission_leave(dt_web_admission *admission, dt_web_client *client)
{
    pthread_mutex_lock(&admission->lock);
    *client = (dt_web_client){.phase = DT_WEB_FREE};
    pthread_mutex_unlock(&admission->lock);
}

void dt_web_admission_shrink(dt_web_admission *admission)
{
    double now = dt_clock_monotonic_seconds();
    int chosen;

    pthread_mutex_lock(&admission->lock);
    chosen = longest(admission->clients, CLIENTS, NULL, now);
    if (chosen >= 0)
        hang_up(&admission->clients[chosen]);
    pthread_mutex_unlock(&admission->lock);
}

bool dt_web_admission_sweep(dt_web_admission *admission)
{
    double now = dt_clock_monotonic_seconds();
    bool any = false;

    pthread_mutex_lock(&admission->lock);
    for (int i = 0; i < CLIENTS; i++) {
        if (dt_web_client_is_over(&admission->clients[i], now))
            hang_up(&admission->clients[i]);
        any = any || admission->clients[i].phase != DT_WEB_FREE;
    }
    pthread_mutex_unlock(&admission->lock);
    return any;
}
