/* trouble: describes what keeps the supervisor of a run from working, as far as it is visible
 * from here. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/proc_end.h"
#include "base/proc_stat.h"
#include "runner/channel/socket.h"
#include "runner/supervisor/client/client_int.h"
#include "runner/supervisor/supervisor.h"
#include "runner/times.h"

#define ANSWER_BYTES 4096

/* Returns the process that supervises the run, and its state in /proc; 0 if there is none, or
 * none that is visible from here. */
static pid_t find_process(char *state, const char *run)
{
    dt_proc_stat stat;
    const char *path;
    dt_arena arena;
    pid_t pid = 0;

    *state = '?';
    dt_arena_init(&arena, 0);
    if (dt_run_path(&path, run, "supervisor.lock", &arena, NULL) == DT_OK)
        pid = dt_lock_holder_find(path, run);
    dt_arena_release(&arena);
    if (pid != 0 && dt_proc_stat_read(&stat, pid))
        *state = stat.state;
    return pid;
}

int64_t dt_supervisor_paused(const char *run)
{
    char state;
    pid_t pid = find_process(&state, run);

    return dt_proc_is_paused(state) ? pid : 0;
}

/* Reads one line, without its newline; returns false if none came in time. */
static bool read_line(dt_strbuf *out, int fd, double seconds)
{
    double deadline = dt_clock_monotonic_seconds() + seconds;
    char bytes[512], *end;

    while (out->length < ANSWER_BYTES) {
        struct pollfd ready = {fd, POLLIN, 0};
        double left = deadline - dt_clock_monotonic_seconds();
        ssize_t got;

        if (left <= 0 || poll(&ready, 1, (int)(left * 1e3) + 1) == 0)
            return false;
        got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return false;
        dt_strbuf_add(out, bytes, (size_t)got);
        end = memchr(out->data, '\n', out->length);
        if (end != NULL) {
            *end = '\0';
            return true;
        }
    }
    return false;
}

typedef enum heard { HEARD_NOBODY, HEARD_NOTHING, HEARD_ANSWER } heard;

/* Pings the supervisor. *waits: why the run history cannot be written at the moment, or NULL.
 * *answer: new reference. */
static heard ping(json_t **answer, const char **waits, const char *folder)
{
    static const char request[] = "{\"command\": \"ping\"}\n";
    heard found = HEARD_NOBODY;
    dt_strbuf line;
    int fd = -1;

    *answer = NULL;
    *waits = NULL;
    dt_strbuf_init(&line);
    if (dt_socket_connect(&fd, folder, "control.sock", NULL) == DT_OK) {
        found = HEARD_NOTHING;
        if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == sizeof(request) - 1 &&
            read_line(&line, fd, dt_times()->ask_paused_seconds) &&
            dt_json_parse(answer, line.data, strlen(line.data), "answer", NULL) == DT_OK) {
            found = HEARD_ANSWER;
            *waits = json_string_value(json_object_get(*answer, "history_waits"));
        }
        close(fd);
    }
    dt_strbuf_release(&line);
    return found;
}

static void describe_silence(dt_strbuf *out, pid_t pid, char state, const char *run)
{
    if (dt_proc_is_paused(state))
        dt_strbuf_add_fmt(
            out,
            "its supervisor, process %d, is paused by a signal (state %c): 'kill -CONT "
            "%d' lets it continue, 'dtrun stop %s --now' ends the run without it",
            (int)pid, state, (int)pid, run);
    else if (state == 'D')
        dt_strbuf_add_fmt(
            out,
            "its supervisor, process %d, does not answer: it is in an uninterruptible wait (state "
            "D), for example for a disk or a network file system that hangs",
            (int)pid);
    else
        dt_strbuf_add_fmt(out, "its supervisor, process %d (state %c), does not answer", (int)pid,
                          state);
}

static void describe_paused(dt_strbuf *out, const char *run)
{
    int64_t pid = dt_helpers_find_paused(run);
    dt_proc_stat stat;

    if (pid != 0 && dt_proc_stat_read(&stat, pid))
        dt_strbuf_add_fmt(
            out,
            "process %lld of the run (%s) is paused by a signal (state %c): 'kill -CONT "
            "%lld' lets it continue",
            (long long)pid, stat.command, stat.state, (long long)pid);
}

bool dt_supervisor_trouble(dt_strbuf *out, const char *run)
{
    size_t before = out->length;
    json_t *answer = NULL;
    const char *folder, *waits;
    dt_arena arena;
    char state;
    pid_t pid = find_process(&state, run);

    dt_arena_init(&arena, 0);
    if (dt_proc_is_paused(state))
        describe_silence(out, pid, state, run);
    else if (dt_run_path(&folder, run, NULL, &arena, NULL) == DT_OK)
        switch (ping(&answer, &waits, folder)) {
        case HEARD_ANSWER:
            if (waits != NULL)
                dt_strbuf_add_fmt(out, "the run history is not written: %s", waits);
            break;
        case HEARD_NOTHING:
            pid = find_process(&state, run);
            if (pid != 0) /* otherwise it has just ended */
                describe_silence(out, pid, state, run);
            break;
        case HEARD_NOBODY:
            break;
        }
    if (out->length == before)
        describe_paused(out, run);
    json_decref(answer);
    dt_arena_release(&arena);
    return out->length > before;
}
