/* ask: sends requests to the supervisor of a run, over its control socket. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "runner/channel/detach.h"
#include "runner/channel/socket.h"
#include "runner/supervisor/folder/launch_env.h"
#include "runner/supervisor/supervisor.h"
#include "runner/times.h"

#define TRY_SECONDS     0.1
#define ASK_TIMES       5
#define START_TIMES     3
#define AGENT_MAX_BYTES 512

/* Reports a supervisor that starts successfully each time but ends before it can be reached. */
static dt_status start_failed(const char *run, const char *folder, dt_error *err)
{
    dt_strbuf log, last_lines;
    dt_status st;

    dt_strbuf_init(&log);
    dt_strbuf_init(&last_lines);
    dt_strbuf_add_fmt(&log, "%s/supervisor.log", folder);
    dt_detach_last_words(&last_lines, log.data, 0);
    st = DT_FAIL(err, DT_ERR_IO,
                 "the supervisor of run '%s' ends right after its start: %s (see '%s')", run,
                 last_lines.length > 0 ? last_lines.data : "it wrote no message", log.data);
    dt_strbuf_release(&log);
    dt_strbuf_release(&last_lines);
    return st;
}

/* Connects to the supervisor, and starts one if there is none. *fd is -1 if the run has ended. */
static dt_status reach(int *fd, const char *run, const char *folder, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + dt_times()->ask_connect_seconds;
    dt_error problem = DT_ERROR_INIT;
    dt_status st;

    for (int round = 0;; round++) {
        st = dt_socket_connect(fd, folder, "control.sock", NULL);
        if (st == DT_OK)
            return DT_OK;
        if (round >= START_TIMES && !dt_supervisor_is_running(run))
            return start_failed(run, folder, err);
        dt_error_clear(&problem);
        st = dt_supervisor_revive(run, true, &problem);
        if (st == DT_ERR_USAGE)
            return DT_OK;
        if (st != DT_OK)
            return DT_FAIL(err, st, "%s", problem.message);
        if (dt_clock_monotonic_seconds() > deadline)
            return DT_FAIL(err, DT_ERR_TIMEOUT,
                           "the supervisor of run '%s' does not answer: see '%s/supervisor.log'",
                           run, folder);
        dt_clock_sleep_seconds(TRY_SECONDS);
    }
}

/* Returns DT_ERR_TIMEOUT if waiting for an answer is useless: the supervisor is paused, or time
 * is over. */
static dt_status check_patience(const char *run, double deadline, dt_error *err)
{
    int64_t paused = dt_supervisor_paused(run);

    if (paused != 0)
        return DT_FAIL(err, DT_ERR_TIMEOUT, "the supervisor, process %lld, is paused",
                       (long long)paused);
    if (dt_clock_monotonic_seconds() > deadline)
        return DT_FAIL(err, DT_ERR_TIMEOUT, "the supervisor did not answer within %.0f s",
                       dt_times()->ask_answer_seconds);
    return DT_OK;
}

/* Returns DT_ERR_PEER if the supervisor ended before it answered. */
static dt_status read_answer(dt_strbuf *out, int fd, const char *run, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + dt_times()->ask_answer_seconds;
    uint64_t paused_ms = dt_times_ms(dt_times()->ask_paused_seconds);
    struct timeval patience = {.tv_sec = (time_t)(paused_ms / 1000),
                               .tv_usec = (suseconds_t)(paused_ms % 1000 * 1000)};
    char bytes[1024];
    dt_status st;
    ssize_t got;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    while (memchr(out->data, '\n', out->length) == NULL) {
        got = read(fd, bytes, sizeof(bytes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0 || (got < 0 && errno == ECONNRESET))
            return DT_FAIL(err, DT_ERR_PEER, "the supervisor ended before it answered");
        if (got < 0 && errno == EAGAIN) {
            st = check_patience(run, deadline, err);
            if (st != DT_OK)
                return st;
            continue;
        }
        if (got < 0)
            return DT_FAIL(err, DT_ERR_TIMEOUT, "the supervisor did not answer: %s",
                           strerror(errno));
        dt_strbuf_add(out, bytes, (size_t)got);
    }
    return DT_OK;
}

static dt_status exchange(int fd, const char *run, const char *request, dt_error *err)
{
    json_t *answer = NULL;
    const char *message;
    dt_strbuf line;
    dt_status st;

    dt_strbuf_init(&line);
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        DT_THROW(err, DT_ERR_PEER, "the supervisor ended before it was asked");
    DT_TRY(read_answer(&line, fd, run, err));
    DT_TRY(dt_json_parse(&answer, line.data, line.length, "answer", err));
    if (json_is_true(json_object_get(answer, "ok")))
        goto out;
    DT_TRY(dt_json_get_string(&message, answer, "message", "answer", err));
    DT_THROW(err, DT_ERR_IO, "%s", message);
out:
    json_decref(answer);
    dt_strbuf_release(&line);
    return st;
}

/* Writes the request, with the caller's ssh-agent for a supervisor whose own is gone
 * (launch_env.h). */
static void write_stop(dt_strbuf *out, bool now)
{
    const char *agent = getenv("SSH_AUTH_SOCK");
    json_t *request = json_pack("{s:s, s:b}", "command", "stop", "now", now);

    if (agent != NULL && strlen(agent) < AGENT_MAX_BYTES && dt_launch_env_is_alive(agent))
        json_object_set_new(request, "ssh_auth_sock", dt_json_text(agent));
    dt_json_write(out, request);
    dt_strbuf_add_char(out, '\n');
    json_decref(request);
}

/* Sends the request to any supervisor; if one is killed before it answers, the next one is
 * asked. */
static dt_status ask_any(const char *run, const char *folder, const char *request, dt_error *err)
{
    dt_status st = DT_OK;
    int fd = -1;

    (void)dt_launch_env_hand_over(folder, NULL); /* best effort: the stop is more important */
    for (int i = 1;; i++) {
        DT_TRY(reach(&fd, run, folder, err));
        if (fd < 0)
            break;
        st = exchange(fd, run, request, err);
        if (st != DT_ERR_PEER || i == ASK_TIMES)
            break;
        dt_error_clear(err);
        close(fd);
        fd = -1;
    }
out:
    if (fd >= 0)
        close(fd);
    return st;
}

/* Sends the request only to a supervisor that is running. */
static dt_status ask_running(const char *run, const char *folder, const char *request,
                             dt_error *err)
{
    dt_status st = DT_OK;
    int fd = -1;

    DT_TRY(dt_socket_connect(&fd, folder, "control.sock", err));
    st = exchange(fd, run, request, err);
    close(fd);
out:
    return st;
}

static dt_status stop(const char *run, bool now,
                      dt_status (*ask)(const char *run, const char *folder, const char *request,
                                       dt_error *err),
                      dt_error *err)
{
    const char *folder;
    dt_strbuf request;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&request);
    write_stop(&request, now);
    DT_TRY(dt_run_path(&folder, run, NULL, &arena, err));
    DT_TRY(ask(run, folder, request.data, err));
out:
    dt_strbuf_release(&request);
    dt_arena_release(&arena);
    return st;
}

dt_status dt_supervisor_stop(const char *run, bool now, dt_error *err)
{
    /* best effort: a supervisor that gets the request does not need the mark */
    (void)dt_supervisor_mark_stop(run, now, NULL);
    return stop(run, now, ask_any, err);
}

dt_status dt_supervisor_preempt(const char *run, dt_error *err)
{
    return stop(run, false, ask_any, err);
}

dt_status dt_supervisor_stop_running(const char *run, bool now, dt_error *err)
{
    return stop(run, now, ask_running, err);
}
