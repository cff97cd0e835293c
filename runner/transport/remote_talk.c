/* Reading, writing, waiting for the end. */
#define _GNU_SOURCE
#include "runner/transport/remote_int.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"

#include "base/banned.h"

#define SLICE_MS 100 /* how soon `cancelled` is seen */

dt_status dt_remote_wait(dt_remote *remote, short events, double deadline, dt_error *err)
{
    struct pollfd end = {remote->fd, events, 0};

    for (;;) {
        int count = poll(&end, 1, SLICE_MS);

        if (count > 0)
            return DT_OK;
        if (count < 0 && errno != EINTR)
            return DT_FAIL(err, DT_ERR_IO, "cannot wait for node '%s': %s", remote->node,
                           strerror(errno));
        if (remote->cancelled != NULL && atomic_load(remote->cancelled))
            return DT_FAIL(err, DT_ERR_BUSY, "node '%s': given up", remote->node);
        if (dt_clock_monotonic_seconds() > deadline)
            return DT_FAIL(err, DT_ERR_TIMEOUT, "node '%s': no answer in time", remote->node);
    }
}

dt_status dt_remote_read(dt_remote *remote, void *bytes, size_t size, size_t *got,
                         double timeout_seconds, dt_error *err)
{
    dt_status st;
    ssize_t count;

    *got = 0;
    st = dt_remote_wait(remote, POLLIN, dt_clock_monotonic_seconds() + timeout_seconds, err);
    if (st != DT_OK)
        return st;
    do
        count = recv(remote->fd, bytes, size, 0);
    while (count < 0 && errno == EINTR);
    if (count < 0 && errno != ECONNRESET)
        return DT_FAIL(err, DT_ERR_PEER, "cannot read from node '%s': %s", remote->node,
                       strerror(errno));
    *got = count > 0 ? (size_t)count : 0;
    return DT_OK;
}

dt_status dt_remote_write(dt_remote *remote, const void *bytes, size_t length,
                          double timeout_seconds, dt_error *err)
{
    const char *at = bytes;

    while (length > 0) {
        double deadline = dt_clock_monotonic_seconds() + timeout_seconds;
        dt_status st = dt_remote_wait(remote, POLLOUT, deadline, err);
        ssize_t count;

        if (st != DT_OK)
            return st;
        count = send(remote->fd, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count < 0)
            return DT_FAIL(err, DT_ERR_PEER, "cannot write to node '%s': %s", remote->node,
                           strerror(errno));
        at += count;
        length -= (size_t)count;
    }
    return DT_OK;
}

void dt_remote_write_end(dt_remote *remote)
{
    shutdown(remote->fd, SHUT_WR);
}

/* --- its end */

bool dt_remote_reap(dt_remote *remote, int *code)
{
    int status;
    pid_t got = waitpid(remote->pid, &status, WNOHANG);

    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    remote->pid = 0;
    *code = got < 0             ? DT_REMOTE_SSH_FAILED
            : WIFEXITED(status) ? WEXITSTATUS(status)
                                : -WTERMSIG(status);
    return true;
}

dt_status dt_remote_finish(dt_remote *remote, int *code, dt_error *problem, double timeout_seconds,
                           dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + timeout_seconds;
    char complaint[DT_REMOTE_COMPLAINT_BYTES], reason[DT_REMOTE_REASON_BYTES];
    int ended = 0;

    dt_remote_write_end(remote);
    while (!dt_remote_reap(remote, &ended)) {
        if (remote->cancelled != NULL && atomic_load(remote->cancelled))
            return DT_FAIL(err, DT_ERR_BUSY, "node '%s': given up", remote->node);
        if (dt_clock_monotonic_seconds() > deadline)
            return DT_FAIL(err, DT_ERR_TIMEOUT, "node '%s': the command does not end",
                           remote->node);
        dt_clock_sleep_seconds(DT_REMOTE_END_SLICE_SECONDS);
    }
    dt_remote_read_problems(remote, complaint, sizeof(complaint));
    if (remote->transport->explain != NULL &&
        (ended == DT_REMOTE_SSH_FAILED || (ended != 0 && remote->transport->broke_off != NULL &&
                                           remote->transport->broke_off(complaint))))
        return remote->transport->explain(remote->node, complaint, err);
    if (code != NULL) {
        *code = ended;
        if (ended != 0)
            DT_FAIL(problem, DT_ERR_IO, "%s", dt_remote_reason(reason, remote, complaint, ended));
    } else if (ended != 0)
        return DT_FAIL(err, DT_ERR_PEER, "node '%s': %s (code %d)", remote->node,
                       dt_remote_reason(reason, remote, complaint, ended), ended);
    return DT_OK;
}
