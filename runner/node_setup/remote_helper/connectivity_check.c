/* connectivity_check: tests whether two nodes can connect to each other in the way that their ranks
 * will.
 *
 * listen prints "port N" and echoes eight bytes of each connection. It ends when its stdin ends:
 * the launch machine closes it after every dialer has answered, however long their logins take.
 *
 * dial connects to all peers at once and prints one line for each, in their order:
 *   met
 *   unreachable REASON   refused, dropped or without a route
 *   failed REASON        anything else
 *
 * A peer without a route is tried again for a while: if a link has just come back, the kernel may
 * still be finishing a neighbour lookup from before.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

enum { MEET_MS = 4000, NO_WAY_MS = 3000, AGAIN_MS = 200, TOKEN_BYTES = 8, CLIENTS_MAX = 64 };

static const char token[TOKEN_BYTES + 1] = "dt-meets";

/* Parses a numeric address; does not ask a name server. */
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

/* --- listen */

typedef struct client {
    int fd;
    size_t have; /* bytes of the token received so far */
    char bytes[TOKEN_BYTES];
} client;

typedef struct listener {
    int fd;
    client clients[CLIENTS_MAX];
    int count;
} listener;

static dt_status open_listener(listener *out, const char *address, dt_error *err)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof(bound);
    struct addrinfo *candidate = NULL;
    dt_status st = DT_OK;
    char port[NI_MAXSERV];

    DT_TRY(look_up(&candidate, address, "0", err));
    out->fd = socket(candidate->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (out->fd < 0 || bind(out->fd, candidate->ai_addr, candidate->ai_addrlen) != 0 ||
        listen(out->fd, CLIENTS_MAX) != 0 ||
        getsockname(out->fd, (struct sockaddr *)&bound, &length) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot listen on %s: %s", address, strerror(errno));
    if (getnameinfo((struct sockaddr *)&bound, length, NULL, 0, port, sizeof(port),
                    NI_NUMERICSERV) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot get the port");
    printf("port %s\n", port);
    fflush(stdout);
out:
    if (candidate != NULL)
        freeaddrinfo(candidate);
    return st;
}

static dt_status add_client(listener *listeners, dt_error *err)
{
    int fd = accept4(listeners->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0)
        listeners->clients[listeners->count++] = (client){.fd = fd};
    else if (errno != EINTR && errno != EAGAIN && errno != ECONNABORTED)
        return DT_FAIL(err, DT_ERR_IO, "cannot accept a connection: %s", strerror(errno));
    return DT_OK;
}

/* Reads what a client sent, and echoes the token once it is complete. Returns false if the client
 * is done. */
static bool serve_client(client *one)
{
    ssize_t got = read(one->fd, one->bytes + one->have, TOKEN_BYTES - one->have);

    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    one->have += (size_t)got;
    if (got > 0 && one->have < TOKEN_BYTES)
        return true;
    if (got > 0 && memcmp(one->bytes, token, TOKEN_BYTES) == 0)
        (void)dt_file_write_all(one->fd, token, TOKEN_BYTES, NULL);
    return false;
}

static void remove_client(listener *listeners, int i)
{
    close(listeners->clients[i].fd);
    listeners->clients[i] = listeners->clients[--listeners->count];
}

dt_status dt_remote_helper_listen(const char *address, dt_error *err)
{
    listener listeners = {.fd = -1};
    dt_status st = DT_OK;
    char bytes[64];

    DT_TRY(open_listener(&listeners, address, err));
    for (;;) {
        struct pollfd ends[2 + CLIENTS_MAX] = {
            {STDIN_FILENO, POLLIN, 0},
            {listeners.count < CLIENTS_MAX ? listeners.fd : -1, POLLIN, 0}};

        for (int i = 0; i < listeners.count; i++)
            ends[2 + i] = (struct pollfd){listeners.clients[i].fd, POLLIN, 0};
        if (poll(ends, 2 + (nfds_t)listeners.count, -1) < 0) {
            if (errno == EINTR)
                continue;
            DT_THROW(err, DT_ERR_IO, "poll: %s", strerror(errno));
        }
        if (ends[0].revents != 0 && read(STDIN_FILENO, bytes, sizeof(bytes)) <= 0)
            break;
        for (int i = listeners.count - 1; i >= 0; i--)
            if (ends[2 + i].revents != 0 && !serve_client(&listeners.clients[i]))
                remove_client(&listeners, i);
        if (ends[1].revents != 0)
            DT_TRY(add_client(&listeners, err));
    }
out:
    while (listeners.count > 0)
        remove_client(&listeners, 0);
    if (listeners.fd >= 0)
        close(listeners.fd);
    return st;
}

/* --- dial */

typedef struct call {
    const char *address, *port;
    pthread_t thread;
    bool threaded;
    bool met, unreachable;
    dt_error why;
} call;

static bool is_unreachable(int problem)
{
    static const int codes[] = {ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN,
                                ENETDOWN,     EACCES,    EPERM,        ECONNRESET};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (problem == codes[i])
            return true;
    return false;
}

/* Waits for one event; returns 0 on timeout. */
static int wait_for(int fd, short events)
{
    struct pollfd end = {fd, events, 0};
    int count;

    do
        count = poll(&end, 1, MEET_MS);
    while (count < 0 && errno == EINTR);
    return count;
}

/* Tries once to connect. *problem: 0 if connected, with the socket in *fd; else the errno. */
static dt_status try_to_connect(int *fd, int *problem, const struct addrinfo *candidate,
                                dt_error *err)
{
    socklen_t length = sizeof(*problem);

    *problem = 0;
    *fd = socket(candidate->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open a socket: %s", strerror(errno));
    if (connect(*fd, candidate->ai_addr, candidate->ai_addrlen) != 0 && errno != EINPROGRESS)
        *problem = errno;
    else if (wait_for(*fd, POLLOUT) == 0)
        *problem = ETIMEDOUT;
    else if (getsockopt(*fd, SOL_SOCKET, SO_ERROR, problem, &length) != 0)
        *problem = errno;
    return DT_OK;
}

static dt_status swap_tokens(call *one, int fd, dt_error *err)
{
    char bytes[TOKEN_BYTES];
    size_t have = 0;
    dt_status st;

    st = dt_file_write_all(fd, token, TOKEN_BYTES, err);
    if (st != DT_OK)
        return st;
    while (have < TOKEN_BYTES) {
        ssize_t got;

        if (wait_for(fd, POLLIN) <= 0) {
            one->unreachable = true;
            return DT_FAIL(err, DT_ERR_TIMEOUT, "connected, but no answer within %d s",
                           MEET_MS / 1000);
        }
        got = read(fd, bytes + have, TOKEN_BYTES - have);
        if (got <= 0)
            return DT_FAIL(err, DT_ERR_PEER, "the other end closed the connection");
        have += (size_t)got;
    }
    return memcmp(bytes, token, TOKEN_BYTES) == 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_CORRUPT, "another program answers there");
}

static void *dial_one(void *context)
{
    const double give_up = dt_clock_monotonic_seconds() + NO_WAY_MS / 1e3;
    call *one = context;
    dt_error *err = &one->why;
    struct addrinfo *candidate = NULL;
    dt_status st = DT_OK;
    int fd = -1, problem;

    DT_TRY(look_up(&candidate, one->address, one->port, err));
    for (;;) {
        DT_TRY(try_to_connect(&fd, &problem, candidate, err));
        if ((problem != EHOSTUNREACH && problem != ENETUNREACH) ||
            dt_clock_monotonic_seconds() >= give_up)
            break;
        close(fd);
        fd = -1;
        dt_clock_sleep_seconds(AGAIN_MS / 1e3);
    }
    one->unreachable = is_unreachable(problem);
    if (problem != 0)
        DT_THROW(err, DT_ERR_PEER, "%s", strerror(problem));
    DT_TRY(swap_tokens(one, fd, err));
out:
    one->met = st == DT_OK;
    if (candidate != NULL)
        freeaddrinfo(candidate);
    if (fd >= 0)
        close(fd);
    return NULL;
}

dt_status dt_remote_helper_dial(int count, char **peers, dt_error *err)
{
    call *calls = dt_calloc((size_t)count, sizeof(calls[0]));

    for (int i = 0; i < count; i++) {
        calls[i].address = peers[2 * i];
        calls[i].port = peers[2 * i + 1];
        calls[i].threaded =
            i + 1 < count && pthread_create(&calls[i].thread, NULL, dial_one, &calls[i]) == 0;
        if (!calls[i].threaded)
            dial_one(&calls[i]);
    }
    for (int i = 0; i < count; i++) {
        if (calls[i].threaded)
            pthread_join(calls[i].thread, NULL);
        if (calls[i].met)
            puts("met");
        else
            printf("%s %s\n", calls[i].unreachable ? "unreachable" : "failed",
                   calls[i].why.message);
    }
    free(calls);
    return DT_OK;
}
