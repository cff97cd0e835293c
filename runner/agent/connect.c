/* connect: the bridge of a supervisor to the agent in a folder, which is started if it is missing; agents
 * of earlier attempts are ended first. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/process.h"
#include "runner/channel/detach.h"
#include "runner/channel/socket.h"

/* fence_old_attempts: ends what an earlier attempt of the run left on this node, before the new one starts.
 *
 * A node that was cut off and given up still has its agent and ranks when it is back, and no supervisor asks
 * for them any more. The agent's folder is BASE/attempt-N/node-K; the folders of earlier attempts are next to it.
 *
 * Only an agent that runs on this machine is touched: if nodes share BASE, the other folders belong to other
 * nodes. Ranks without an agent (the node's home was wiped, or another process has just killed the agent to end
 * it) are found by their mark (direct.c).
 */

/* Does the same as `dtrun-agent end`, and logs it in that agent's log. */
static void end_agent(const char *folder)
{
    dt_error err = DT_ERROR_INIT;
    int log;

    if (chdir(folder) == 0 && (log = open("agent.log", O_WRONLY | O_APPEND | O_CLOEXEC)) >= 0)
        dup2(log, STDERR_FILENO);
    if (dt_agent_end(folder, false, &err) != DT_OK)
        dt_log_error("%s", err.message);
}

/* Ends the agent of an earlier attempt in a child process. Another process that ends it too
 * (`dtrun-agent end`, a second connection) may take the child for a hanging agent and kill it.
 * That process finishes the work and is not waited for; here the rest is ended without the
 * agent. */
static void end_holder(const char *folder)
{
    dt_error err = DT_ERROR_INIT;

    if (!dt_agent_run_in_child(end_agent, folder) && dt_agent_end_marked(folder, &err) != DT_OK)
        dt_log_error("%s", err.message);
}

static void end_nodes_of(const char *attempt)
{
    DIR *dir = opendir(attempt);
    struct dirent *entry;
    dt_strbuf folder;

    dt_strbuf_init(&folder);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "node-", 5) != 0)
            continue;
        dt_strbuf_reset(&folder);
        dt_strbuf_add_fmt(&folder, "%s/%s", attempt, entry->d_name);
        if (dt_agent_holder_is_here(folder.data))
            end_holder(folder.data);
    }
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&folder);
}

/* True if the process is in our mount namespace: if several nodes are simulated on one machine,
 * each ends its own processes. */
static bool sees_our_files(long long pid)
{
    char name[64], theirs[64], ours[64];
    ssize_t length, own;

    snprintf(name, sizeof(name), "/proc/%lld/ns/mnt", pid);
    length = readlink(name, theirs, sizeof(theirs));
    own = readlink("/proc/self/ns/mnt", ours, sizeof(ours));
    return length > 0 && length == own && memcmp(theirs, ours, (size_t)own) == 0;
}

/* Ends processes without an agent: their folder is gone, or its holder was killed. `before`:
 * BASE/attempt-, as in the processes' marks. */
static void end_agentless(const char *before, size_t length, long own_attempt)
{
    dt_error err = DT_ERROR_INIT;
    const char *folder;
    json_t *runs, *entry;
    long other;

    if (dt_agent_list_running(&runs, &err) != DT_OK)
        dt_log_warn("%s", err.message);
    json_object_foreach(runs, folder, entry) {
        const json_t *first = json_array_get(json_object_get(entry, "pids"), 0);

        if (strncmp(folder, before, length) != 0 || sscanf(folder + length, "%ld", &other) != 1 ||
            other >= own_attempt || dt_agent_holder_is_here(folder) ||
            !sees_our_files((long long)json_integer_value(first)))
            continue;
        dt_log_warn("no agent runs in '%s': ending the processes that belong to it", folder);
        if (dt_agent_end_marked(folder, &err) != DT_OK)
            dt_log_error("%s", err.message);
    }
    json_decref(runs);
}

/* Returns the length of BASE/attempt- in a FOLDER of the form BASE/attempt-N/node-K; 0: the
 * folder has another form. */
static size_t length_before_number(const char *folder)
{
    const char *node = strrchr(folder, '/');
    const char *at = node;

    while (at != NULL && at > folder && at[-1] != '/')
        at--;
    return at != NULL && strncmp(at, "attempt-", 8) == 0 ? (size_t)(at + 8 - folder) : 0;
}

/* --- connect.c: ends what earlier attempts of the run left on this machine */
static void fence_old_attempts(const char *folder)
{
    size_t before = length_before_number(folder);
    struct dirent *entry;
    char base[PATH_MAX];
    dt_strbuf attempt;
    long own, other;
    char *slash;
    DIR *dir;

    if (realpath(folder, base) == NULL || (slash = strrchr(base, '/')) == NULL)
        return;
    *slash = '\0';
    slash = strrchr(base, '/');
    if (slash == NULL || sscanf(slash, "/attempt-%ld", &own) != 1)
        return; /* not a folder made by dtrun */
    *slash = '\0';
    dir = opendir(base);
    dt_strbuf_init(&attempt);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (sscanf(entry->d_name, "attempt-%ld", &other) != 1 || other >= own)
            continue;
        dt_strbuf_reset(&attempt);
        dt_strbuf_add_fmt(&attempt, "%s/%s", base, entry->d_name);
        end_nodes_of(attempt.data);
    }
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&attempt);
    if (before > 0)
        end_agentless(folder, before, own);
}

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
        fence_old_attempts(folder);
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
