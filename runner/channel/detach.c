#define _GNU_SOURCE
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
#include "base/startup.h"
#include "base/strbuf.h"

#include "base/banned.h"

#define READY_VARIABLE "DTRUN_READY_FD"
#define REPORT_BYTES   4096

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
        return; /* that of the caller does too */
}

/* In the grandchild: never returns. */
static void become(const char *const *argv, const char *log_path, const dt_detach_place *place,
                   int ready)
{
    char number[16];
    int log, nothing;

    nothing = open("/dev/null", O_RDONLY);
    log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    if (nothing < 0 || log < 0 || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) {
        dprintf(ready, "%d cannot open '%s': %s", (int)DT_ERR_IO, log_path, strerror(errno));
        _exit(127);
    }
    close(nothing);
    close(log);
    move_to(place);
    fcntl(ready, F_SETFD, 0);
    snprintf(number, sizeof(number), "%d", ready);
    setenv(READY_VARIABLE, number, 1);
    dt_startup_child_detached();
    execv("/proc/self/exe", (char *const *)argv);
    dprintf(ready, "%d cannot run '%s': %s", (int)DT_ERR_IO, argv[0], strerror(errno));
    _exit(127);
}

static dt_status wait_for_report(int ready, const char *const *argv, const char *log_path,
                                 double timeout_seconds, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + timeout_seconds;
    char report[REPORT_BYTES], *text;
    size_t length = 0;
    long code;

    for (;;) {
        double left = deadline - dt_clock_monotonic_seconds();
        struct pollfd waiting = {ready, POLLIN, 0};
        ssize_t got;

        if (left <= 0 || poll(&waiting, 1, (int)(left * 1e3) + 1) == 0)
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
        return DT_FAIL(err, DT_ERR_IO, "'%s %s' ended before it was ready: see '%s'", argv[0],
                       argv[1] != NULL ? argv[1] : "", log_path);
    return code == DT_OK ? DT_OK : DT_FAIL(err, (dt_status)code, "%s", text + (*text == ' '));
}

dt_status dt_detach_start(const char *const *argv, const char *log_path,
                          const dt_detach_place *place, double timeout_seconds, dt_error *err)
{
    dt_status st;
    int ready[2], ended;
    pid_t child;

    if (pipe2(ready, O_CLOEXEC) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make a pipe: %s", strerror(errno));
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
        st = wait_for_report(ready[0], argv, log_path, timeout_seconds, err);
    }
    close(ready[0]);
    return st;
}
