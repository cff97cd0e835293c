#include "runner/channel/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/strbuf.h"

#define READY_VARIABLE "DTRUN_READY_FD"
#define REPORT_BYTES   4096
#define LAST_BYTES     2048

int dt_detach_claim(void)
{
    const char *number = getenv(READY_VARIABLE);
    long fd = number != NULL ? strtol(number, NULL, 10) : -1;

    unsetenv(READY_VARIABLE);
    if (fd <= STDERR_FILENO || fd > INT_MAX || fcntl((int)fd, F_SETFD, FD_CLOEXEC) != 0)
        return -1;
    return (int)fd;
}

void dt_detach_ready(int *ready, dt_status st, const dt_error *err)
{
    char report[REPORT_BYTES];

    if (*ready < 0)
        return;
    snprintf(report, sizeof(report), "%d %s", (int)st, st == DT_OK ? "" : err->message);
    dt_file_write_all(*ready, report, strlen(report), NULL);
    close(*ready);
    *ready = -1;
}

extern char **environ;

static void move_to(const dt_detach_place *place)
{
    if (place == NULL)
        return;
    if (place->environment != NULL)
        environ = place->environment;
    if (place->umask >= 0)
        umask((mode_t)place->umask);
    if (place->directory != NULL && chdir(place->directory) != 0 && chdir("/") != 0)
        return; /* keep the caller's folder */
}

/* Runs in the grandchild; never returns. */
static void become(const char *const *argv, const char *log_path, const dt_detach_place *place,
                   int ready)
{
    char number[16];
    int log, nothing;

    nothing = open("/dev/null", O_RDONLY);
    log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    if (nothing < 0 || log < 0 || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) {
        dprintf(ready, "%d cannot open '%s': %s", (int)DT_ERR_IO, log_path, strerror(errno));
        _exit(DT_EXIT_NO_PROGRAM);
    }
    close(nothing);
    close(log);
    move_to(place);
    dt_startup_close_on_exec();
    fcntl(ready, F_SETFD, 0);
    snprintf(number, sizeof(number), "%d", ready);
    setenv(READY_VARIABLE, number, 1);
    dt_startup_child_detached();
    execv("/proc/self/exe", (char *const *)argv);
    dprintf(ready, "%d cannot run '%s': %s", (int)DT_ERR_IO, argv[0], strerror(errno));
    _exit(DT_EXIT_NO_PROGRAM);
}

static int64_t size_of(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? (int64_t)info.st_size : 0;
}

/* Returns the line without its time stamp "2026-11-26T01:24:58.852Z ", if it has one. */
static const char *without_time(const char *line)
{
    const char *blank = strchr(line, ' ');

    return blank != NULL && blank - line == 24 && blank[-1] == 'Z' ? blank + 1 : line;
}

void dt_detach_last_words(dt_strbuf *out, const char *log_path, int64_t from)
{
    const char *last[2] = {NULL, NULL};
    char text[LAST_BYTES + 1], *rest;
    int64_t size = size_of(log_path);
    int fd = open(log_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = 0;

    if (size < from)
        from = 0; /* the log was truncated since */
    if (fd >= 0) {
        got = pread(fd, text, LAST_BYTES, size - from > LAST_BYTES ? size - LAST_BYTES : from);
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (line[0] != '\0') {
            last[0] = last[1];
            last[1] = without_time(line);
        }
    for (int i = 0; i < 2; i++)
        if (last[i] != NULL)
            dt_strbuf_add_fmt(out, "%s%s", i > 0 && last[0] != NULL ? "; " : "", last[i]);
}

static dt_status ended_early(const char *const *argv, const char *log_path, int64_t from,
                             dt_error *err)
{
    dt_strbuf words;
    dt_status st;

    dt_strbuf_init(&words);
    dt_detach_last_words(&words, log_path, from);
    st = DT_FAIL(err, DT_ERR_IO, "'%s %s' ended before it was ready: %s (see '%s')", argv[0],
                 argv[1] != NULL ? argv[1] : "",
                 words.length > 0 ? words.data : "it wrote no message", log_path);
    dt_strbuf_release(&words);
    return st;
}

static dt_status wait_for_report(int ready, const char *const *argv, const char *log_path,
                                 int64_t from, double timeout_seconds, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + timeout_seconds;
    char report[REPORT_BYTES], *text;
    size_t length = 0;
    long code;

    for (;;) {
        double left = deadline - dt_clock_monotonic_seconds();
        struct pollfd waiting = {ready, POLLIN, 0};
        int readable = left > 0 ? poll(&waiting, 1, (int)(left * 1e3) + 1) : 0;
        ssize_t got;

        if (readable < 0 && errno == EINTR)
            continue;
        if (readable == 0)
            return DT_FAIL(err, DT_ERR_TIMEOUT, "'%s %s' was not ready within %.0f s: see '%s'",
                           argv[0], argv[1] != NULL ? argv[1] : "", timeout_seconds, log_path);
        got = read(ready, report + length, sizeof(report) - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    report[length] = '\0';
    code = strtol(report, &text, 10);
    if (text == report || code < 0 || code >= DT_STATUS_COUNT)
        return ended_early(argv, log_path, from, err);
    return code == DT_OK ? DT_OK : DT_FAIL(err, (dt_status)code, "%s", text + (*text == ' '));
}

dt_status dt_detach_start(const char *const *argv, const char *log_path,
                          const dt_detach_place *place, double timeout_seconds, dt_error *err)
{
    int64_t from = size_of(log_path);
    dt_status st;
    int ready[2], ended;
    pid_t child;

    if (pipe2(ready, O_CLOEXEC) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot create a pipe: %s", strerror(errno));
    child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0)
            become(argv, log_path, place, ready[1]);
        _exit(0);
    }
    close(ready[1]);
    if (child < 0) {
        st = DT_FAIL(err, DT_ERR_IO, "cannot start a process: %s", strerror(errno));
    } else {
        while (waitpid(child, &ended, 0) < 0 && errno == EINTR)
            ;
        st = wait_for_report(ready[0], argv, log_path, from, timeout_seconds, err);
    }
    close(ready[0]);
    return st;
}
