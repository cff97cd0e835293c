/* libc_pipe: answers the calls for pipes and sockets, and waits for them. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/sim/wrap.h"

static void pair_fds(int fds[2])
{
    sim_end *ends[2];

    sim_pair(ends);
    for (int i = 0; i < 2; i++) {
        fds[i] = sim_fd_new(sim_self(), SIM_FD_END);
        sim_self()->fds[fds[i]].end = ends[i];
    }
}

WRAP(int, socketpair, int domain, int type, int protocol, int fds[2])
{
    pair_fds(fds);
    return 0;
}

WRAP(int, pipe2, int fds[2], int flags)
{
    if (sim_self() == NULL)
        return __real_pipe2(fds, flags);
    pair_fds(fds);
    return 0;
}

WRAP(int, accept4, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    sim_fd *entry = sim_fd_get(fd);
    int made;

    if (entry == NULL || entry->listener->count == 0)
        return sim_errno(EAGAIN);
    made = sim_fd_new(sim_self(), SIM_FD_END);
    sim_self()->fds[made].end = entry->listener->waiting[0];
    sim_self()->fds[made].nonblocking = true;
    entry->listener->count--;
    memmove(entry->listener->waiting, entry->listener->waiting + 1,
            (size_t)entry->listener->count * sizeof(entry->listener->waiting[0]));
    return made;
}

WRAP(int, shutdown, int fd, int how)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry == NULL)
        return -1;
    sim_end_shut(entry->end);
    return 0;
}

WRAP(ssize_t, send, int fd, const void *bytes, size_t length, int flags)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry == NULL)
        return -1;
    return sim_end_write(entry->end, bytes, length) ? (ssize_t)length : sim_errno(EPIPE);
}

WRAP(int, setsockopt, int fd, int level, int option, const void *value, socklen_t length)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry != NULL && option == SO_RCVTIMEO)
        entry->patience_ns = ((const struct timeval *)value)->tv_sec * SIM_SECOND;
    return 0;
}

WRAP(int, fcntl, int fd, int command, ...)
{
    return 0;
}

static int look(struct pollfd *waiting, nfds_t count)
{
    int found = 0;

    for (nfds_t i = 0; i < count; i++) {
        sim_end *end = sim_fd_end(sim_self(), waiting[i].fd);

        waiting[i].revents = 0;
        if (end != NULL && (waiting[i].events & POLLIN) != 0 &&
            (sim_end_waiting(end) > 0 || end->eof))
            waiting[i].revents |= POLLIN;
        if (end != NULL && (waiting[i].events & POLLRDHUP) != 0 && end->eof)
            waiting[i].revents |= POLLRDHUP;
        found += waiting[i].revents != 0;
    }
    return found;
}

WRAP(int, poll, struct pollfd *waiting, nfds_t count, int timeout_ms)
{
    int64_t until = timeout_ms < 0 ? SIM_NEVER : sim_now_ns + timeout_ms * SIM_MS;
    int found;

    if (sim_self() == NULL)
        return __real_poll(waiting, count, timeout_ms);
    while ((found = look(waiting, count)) == 0 && sim_now_ns < until) {
        for (nfds_t i = 0; i < count; i++) {
            sim_end *end = sim_fd_end(sim_self(), waiting[i].fd);

            if (end != NULL)
                end->reader = sim_running;
        }
        sim_wait(until);
    }
    return found;
}
