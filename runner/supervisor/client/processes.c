/* processes: the processes of a run on this machine: what its supervisor started, the supervisor itself,
 * what keeps it from working, and its end from outside. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/strbuf.h"
#include "runner/channel/socket.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/supervisor.h"
#include "runner/times.h"

/* helpers: finds the processes that a supervisor started on this machine: bridges to nodes (dtrun-reach, ssh,
 * dtrun-agent connect) and file copies. They end with their supervisor, except paused ones (SIGSTOP). */

#define END_SECONDS 5.0

typedef struct wanted {
    const char *mark; /* NAME=value */
    bool paused_only;
} wanted;

static bool carries_mark(const void *context, char state, const char *environment, size_t length)
{
    const wanted *search = context;
    size_t step;

    if (search->paused_only && !dt_proc_is_paused(state))
        return false;
    for (size_t at = 0; at < length; at += step) {
        step = strnlen(environment + at, length - at) + 1;
        if (strcmp(environment + at, search->mark) == 0)
            return true;
    }
    return false;
}

/* Returns the mark of a run's helpers, in the arena, or NULL if it cannot be made. */
static const char *mark_of(const char *run, dt_arena *arena)
{
    const char *folder;

    if (dt_run_path(&folder, run, NULL, arena, NULL) != DT_OK)
        return NULL;
    return dt_arena_printf(arena, DT_SUPERVISOR_MARK "=%s", folder);
}

int64_t dt_supervisor_end_helpers(const char *run, bool paused_only)
{
    int64_t left = 0;
    const char *mark;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    mark = mark_of(run, &arena);
    if (mark != NULL)
        left = dt_proc_end_all("environ", carries_mark, &(wanted){mark, paused_only}, END_SECONDS);
    dt_arena_release(&arena);
    return left;
}

/* helpers: returns a process that the run's supervisor started on this machine (an agent, a
 * rank, a bridge) and that is stopped by a signal; 0 if there is none. */
static int64_t helpers_find_paused(const char *run)
{
    int64_t found = 0;
    const char *mark;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    mark = mark_of(run, &arena);
    if (mark != NULL)
        found = dt_proc_find("environ", carries_mark, &(wanted){mark, true});
    dt_arena_release(&arena);
    return found;
}

/* --- lock_holder: the process that holds supervisor.lock. A supervisor may be killed at any moment: the
 * next one continues from the store and the agents' journals. */

#define KILLED_SECONDS     5.0
#define TRY_SECONDS        0.005
#define LINE_BYTES         256
#define COMMAND_LINE_BYTES ((size_t)4096)

static bool supervises(pid_t pid, const char *run)
{
    dt_strbuf command_line, want;
    char path[32];
    bool found = false;

    dt_strbuf_init(&command_line);
    dt_strbuf_init(&want);
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    dt_strbuf_add_fmt(&want, "%csupervise%c%s", 0, 0, run);
    if (dt_file_read(&command_line, path, COMMAND_LINE_BYTES, NULL) == DT_OK)
        found = memmem(command_line.data, command_line.length, want.data, want.length + 1) != NULL;
    dt_strbuf_release(&command_line);
    dt_strbuf_release(&want);
    return found;
}

/* Returns the holder of the lock (a path), whose command line is "... supervise RUN"; 0 if there is none,
 * or none that is visible from here. Parses lines like "3: FLOCK ADVISORY WRITE 731 08:01:5112 0 EOF" of
 * /proc/locks. Inode numbers are unique only within a file system, so the holder's command line is checked
 * too. */
static pid_t lock_holder_find(const char *lock, const char *run)
{
    FILE *locks = fopen("/proc/locks", "re");
    unsigned long long inode;
    char line[LINE_BYTES];
    struct stat info;
    int pid = 0, seen;

    if (locks == NULL || stat(lock, &info) != 0)
        pid = -1;
    while (pid == 0 && fgets(line, sizeof(line), locks) != NULL)
        if (sscanf(line, "%*d: FLOCK %*s WRITE %d %*x:%*x:%llu", &seen, &inode) == 2 &&
            inode == info.st_ino && supervises((pid_t)seen, run))
            pid = seen;
    if (locks != NULL)
        fclose(locks);
    return pid > 0 ? pid : 0;
}

/* Sends SIGKILL; returns whether the process no longer holds the lock. Another one may hold it
 * by then. */
static bool lock_holder_kill(pid_t pid, const char *lock, const char *run)
{
    double until = dt_clock_monotonic_seconds() + KILLED_SECONDS;
    bool ended;

    kill(pid, SIGKILL);
    while (!(ended = lock_holder_find(lock, run) != pid) && dt_clock_monotonic_seconds() < until)
        dt_clock_sleep_seconds(TRY_SECONDS);
    return ended;
}

/* trouble: describes what keeps the supervisor of a run from working, as far as it is visible
 * from here. */

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
        pid = lock_holder_find(path, run);
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
    int64_t pid = helpers_find_paused(run);
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

/* end: ends a supervisor from outside, for good. */

#define TAKE_SECONDS 5.0
#define LOOK_SECONDS 0.05

/* Returns the newest attempt that has a folder; the store may be behind. */
static int64_t newest_attempt(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int64_t newest = 1, attempt;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        attempt =
            strncmp(entry->d_name, "attempt-", 8) == 0 ? strtoll(entry->d_name + 8, NULL, 10) : 0;
        newest = attempt > newest ? attempt : newest;
    }
    if (dir != NULL)
        closedir(dir);
    return newest;
}

dt_status dt_supervisor_mark_stop(const char *run, bool now, dt_error *err)
{
    const char *folder;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, run, NULL, &arena, err));
    DT_TRY(dt_run_check_owner(run, folder, err));
    DT_TRY(dt_stop_mark_ask(folder, newest_attempt(folder), now, err));
out:
    dt_arena_release(&arena);
    return st;
}

/* Checks that the lock file has room for the mark, before the supervisor is killed. */
static dt_status check_place(const char *lock, dt_error *err)
{
    int fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    dt_status st = fd >= 0 ? dt_stop_mark_reserve(fd, err)
                           : DT_FAIL(err, DT_ERR_IO, "cannot open '%s': %s", lock, strerror(errno));

    if (fd >= 0)
        close(fd);
    return st;
}

/* Takes the supervisor's lock, and kills its holder, including a supervisor that is started
 * meanwhile (the driver of a sweep asks for the stop repeatedly). DT_ERR_BUSY: the holder
 * survives, or is not visible from here; else the status of dt_file_lock. */
static dt_status take_lock(int *lock, const char *path, const char *run, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + TAKE_SECONDS;
    dt_status st;
    pid_t pid;

    while ((st = dt_file_lock(lock, path, err)) == DT_ERR_BUSY &&
           dt_clock_monotonic_seconds() < deadline) {
        pid = lock_holder_find(path, run);
        if (pid != 0)
            (void)lock_holder_kill(pid, path, run);
        else /* the holder is just starting, or on another machine */
            dt_clock_sleep_seconds(LOOK_SECONDS);
    }
    return st == DT_ERR_BUSY ? DT_FAIL(err, DT_ERR_BUSY, "the run's supervisor is on another host")
                             : st;
}

dt_status dt_supervisor_end(int *lock, const char *run, dt_error *err)
{
    const char *folder, *path;
    dt_status st;
    dt_arena arena;

    *lock = -1;
    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, run, NULL, &arena, err));
    DT_TRY(dt_run_path(&path, run, "supervisor.lock", &arena, err));
    DT_TRY(check_place(path, err));
    DT_TRY(take_lock(lock, path, run, err));
    DT_TRY(dt_stop_mark_set(*lock, newest_attempt(folder), err));
out:
    if (st != DT_OK && *lock >= 0) {
        close(*lock);
        *lock = -1;
    }
    dt_arena_release(&arena);
    return st;
}
