/* connectivity_check: whether a connection between two nodes comes about, as the ranks will make
 * theirs.
 *
 * listen prints "port N", takes one connection, echoes the eight bytes that come on it, and says
 * "met"; dial sends them and wants them back, and says "met". Both give up after a few seconds.
 *
 * A peer without a way to it is tried again for a while: where a link has only just come back, the
 * kernel may still be at the end of a search for its neighbour that began before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

#include "base/banned.h"

enum { MEET_MS = 4000, NO_WAY_MS = 3000, AGAIN_MS = 200, TOKEN_BYTES = 8 };

static const char token[TOKEN_BYTES + 1] = "dt-meets";

static dt_status wait_for(int fd, short events, const char *what, dt_error *err)
{
    struct pollfd end = {fd, events, 0};

    return poll(&end, 1, MEET_MS) == 1
               ? DT_OK
               : DT_FAIL(err, DT_ERR_TIMEOUT, "%s within %d s", what, MEET_MS / 1000);
}

/* A numeric address: nobody's name server is asked. */
static dt_status look_up(struct addrinfo **out, const char *address, const char *port,
                         dt_error *err)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    int problem = getaddrinfo(address, port, &wanted, out);

    return problem == 0 ? DT_OK
                        : DT_FAIL(err, DT_ERR_USAGE, "'%s' is not an address: %s", address,
                                  gai_strerror(problem));
}

static dt_status take_token(int fd, dt_error *err)
{
    char bytes[TOKEN_BYTES];
    size_t have = 0;
    dt_status st;

    while (have < TOKEN_BYTES) {
        ssize_t got;

        st = wait_for(fd, POLLIN, "nothing came on the connection", err);
        if (st != DT_OK)
            return st;
        got = read(fd, bytes + have, TOKEN_BYTES - have);
        if (got <= 0)
            return DT_FAIL(err, DT_ERR_PEER, "the connection was closed");
        have += (size_t)got;
    }
    return memcmp(bytes, token, TOKEN_BYTES) == 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_CORRUPT, "something else answers there");
}

dt_status dt_remote_helper_listen(const char *address, dt_error *err)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof(bound);
    struct addrinfo *at = NULL;
    dt_status st = DT_OK;
    int fd = -1, peer = -1;
    char port[NI_MAXSERV];

    DT_TRY(look_up(&at, address, "0", err));
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 4) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &length) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot listen on %s: %s", address, strerror(errno));
    if (getnameinfo((struct sockaddr *)&bound, length, NULL, 0, port, sizeof(port),
                    NI_NUMERICSERV) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot tell the port");
    printf("port %s\n", port);
    fflush(stdout);
    DT_TRY(wait_for(fd, POLLIN, "nobody connected", err));
    peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (peer < 0)
        DT_THROW(err, DT_ERR_IO, "accept: %s", strerror(errno));
    DT_TRY(take_token(peer, err));
    DT_TRY(dt_file_write_all(peer, token, TOKEN_BYTES, err));
    puts("met");
out:
    if (at != NULL)
        freeaddrinfo(at);
    if (peer >= 0)
        close(peer);
    if (fd >= 0)
        close(fd);
    return st;
}

/* One try; *problem is the errno of a refusal and 0 for a connection, which is then in *fd. */
static dt_status try_to_connect(int *fd, int *problem, const struct addrinfo *at, dt_error *err)
{
    socklen_t length = sizeof(*problem);
    dt_status st;

    *problem = 0;
    *fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return DT_FAIL(err, DT_ERR_PEER, "socket: %s", strerror(errno));
    if (connect(*fd, at->ai_addr, at->ai_addrlen) != 0 && errno != EINPROGRESS) {
        *problem = errno;
        return DT_OK;
    }
    st = wait_for(*fd, POLLOUT, "no answer", err);
    if (st == DT_OK && getsockopt(*fd, SOL_SOCKET, SO_ERROR, problem, &length) != 0)
        *problem = errno;
    return st;
}

static bool has_no_way(int problem)
{
    return problem == EHOSTUNREACH || problem == ENETUNREACH;
}

dt_status dt_remote_helper_dial(const char *address, const char *port, dt_error *err)
{
    const double give_up = dt_clock_monotonic_seconds() + NO_WAY_MS / 1e3;
    struct addrinfo *at = NULL;
    dt_status st = DT_OK;
    int fd = -1, problem;

    DT_TRY(look_up(&at, address, port, err));
    for (;;) {
        DT_TRY(try_to_connect(&fd, &problem, at, err));
        if (!has_no_way(problem) || dt_clock_monotonic_seconds() >= give_up)
            break;
        close(fd);
        fd = -1;
        dt_clock_sleep_seconds(AGAIN_MS / 1e3);
    }
    if (problem != 0)
        DT_THROW(err, DT_ERR_PEER, "%s", strerror(problem));
    DT_TRY(dt_file_write_all(fd, token, TOKEN_BYTES, err));
    DT_TRY(take_token(fd, err));
    puts("met");
out:
    if (at != NULL)
        freeaddrinfo(at);
    if (fd >= 0)
        close(fd);
    return st;
}
