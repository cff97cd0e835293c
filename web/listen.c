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
