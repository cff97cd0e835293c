/* connect: copies bytes between a transport's stdin and stdout and the agent's socket. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "runner/agent/agent_int.h"
#include "runner/channel/detach.h"
#include "runner/channel/socket.h"

#define START_SECONDS     10.0
#define LINGER_MS         2000 /* time for the agent to close its side after ours has ended */
#define TRY_EVERY_SECONDS 0.01

/* Copies one read. Returns false if this direction has ended. */
static bool copy(int from, int to)
{
    char bytes[65536];
    ssize_t got;

    do
        got = read(from, bytes, sizeof(bytes));
    while (got < 0 && errno == EINTR);
    return got > 0 && dt_file_write_all(to, bytes, (size_t)got, NULL) == DT_OK;
}

static void bridge(int agent)
{
    struct pollfd ends[2] = {{STDIN_FILENO, POLLIN, 0}, {agent, POLLIN, 0}};

    for (;;) {
        int count = poll(ends, 2, ends[0].fd < 0 ? LINGER_MS : -1);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return;
        if (ends[1].revents != 0 && !copy(agent, STDOUT_FILENO))
            return;
        if (ends[0].fd >= 0 && ends[0].revents != 0 && !copy(STDIN_FILENO, agent)) {
            shutdown(agent, SHUT_WR);
            ends[0].fd = -1;
        }
    }
}

/* Fails if the caller is gone: a cut connection may deliver its command long after the
 * supervisor gave up on it. (A terminal, a file and an open pipe count as a caller.) */
static dt_status check_somebody_asks(const char *folder, dt_error *err)
{
    struct pollfd input = {STDIN_FILENO, POLLRDHUP, 0};

    return poll(&input, 1, 0) == 1 && (input.revents & (POLLRDHUP | POLLHUP)) != 0
               ? DT_FAIL(err, DT_ERR_PEER, "the caller is gone: not starting an agent in '%s'",
                         folder)
               : DT_OK;
}

/* Starts `serve`; DT_OK if another process has just started it. */
static dt_status start_agent(const char *folder, dt_error *err)
{
    const char *const argv[] = {"dtrun-agent", "serve", folder, NULL};
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf log;
    dt_status st;

    dt_strbuf_init(&log);
    dt_strbuf_add_fmt(&log, "%s/agent.log", folder);
    st = dt_detach_start(argv, log.data, NULL, START_SECONDS, &problem);
    if (st == DT_ERR_BUSY)
        st = DT_OK;
    else if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    dt_strbuf_release(&log);
    return st;
}

dt_status dt_agent_connect(const char *folder, bool start, bool replace, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + START_SECONDS;
    dt_status st = DT_OK;
    int agent = -1;

    signal(SIGPIPE, SIG_IGN);
    if (start) {
        DT_TRY(check_somebody_asks(folder, err));
        DT_TRY(dt_agent_folder_make(folder, err));
    } else {
        DT_TRY(dt_agent_folder_check(folder, err));
    }
    if (replace)
        DT_TRY(dt_agent_holder_kill(folder, err));
    if (start)
        dt_agent_fence_old_attempts(folder);
    st = dt_socket_connect(&agent, folder, "agent.sock", start ? NULL : err);
    /* An agent that is about to exit still holds its lock: try again until it is gone. */
    while (start && st == DT_ERR_NOT_FOUND) {
        DT_TRY(check_somebody_asks(folder, err));
        DT_TRY(start_agent(folder, err));
        st = dt_socket_connect(&agent, folder, "agent.sock", NULL);
        if (st == DT_ERR_NOT_FOUND && dt_clock_monotonic_seconds() > deadline)
            DT_THROW(err, DT_ERR_TIMEOUT, "the agent in '%s' holds its lock and does not answer",
                     folder);
        if (st == DT_ERR_NOT_FOUND)
            dt_clock_sleep_seconds(TRY_EVERY_SECONDS);
    }
    if (st != DT_OK)
        DT_THROW(err, st, "cannot connect to the agent in '%s'", folder);
    bridge(agent);
out:
    if (agent >= 0)
        close(agent);
    return st;
}
