/* leftover: tests whether a process outlives the login that started it, as an agent must.
 *
 * leave starts a process that is detached like an agent, and prints "PID START". look, in another
 * login, watches this process for a while, prints "alive" or "gone", and ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc_stat.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

#define LIFE_SECONDS \
    120 /* longer than a slow login; the process exits by then if it is not ended */
#define LOOK_SECONDS 1.5 /* a session's processes are killed after its connection closes */
#define WAIT_SECONDS 0.05

/* Waits in a grandchild. Its parent started a session and exited, so that init is its parent. */
static void stay(int report)
{
    int nothing = open("/dev/null", O_RDWR);
    dt_proc_stat stat;

    if (nothing < 0 || !dt_proc_stat_read(&stat, getpid()))
        _exit(1);
    dprintf(report, "%d %llu\n", (int)getpid(), (unsigned long long)stat.start_ticks);
    for (int i = 0; i < 3; i++)
        dup2(nothing, i);
    close(report);
    alarm(LIFE_SECONDS);
    for (;;)
        pause();
}

dt_status dt_remote_helper_leave(dt_error *err)
{
    char line[64] = "";
    dt_status st = DT_OK;
    int ends[2];
    ssize_t got;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make a pipe: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        if (setsid() < 0 || (pid = fork()) < 0)
            _exit(1);
        if (pid == 0)
            stay(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    got = pid > 0 ? read(ends[0], line, sizeof(line) - 1) : -1;
    if (got <= 0)
        st = DT_FAIL(err, DT_ERR_IO, "cannot start a process: %s",
                     pid < 0 ? strerror(errno) : "it ended at once");
    else
        fputs(line, stdout);
    close(ends[0]);
    return st;
}

dt_status dt_remote_helper_look(const char *pid_text, const char *start_text)
{
    const double until = dt_clock_monotonic_seconds() + LOOK_SECONDS;
    uint64_t start = strtoull(start_text, NULL, 10);
    long pid = strtol(pid_text, NULL, 10);
    dt_proc_stat stat;
    bool alive;

    for (;;) {
        alive = pid > 1 && dt_proc_stat_read(&stat, pid) && stat.start_ticks == start &&
                stat.state != 'Z';
        if (!alive || dt_clock_monotonic_seconds() > until)
            break;
        dt_clock_sleep_seconds(WAIT_SECONDS);
    }
    if (alive)
        (void)kill((pid_t)pid, SIGKILL);
    puts(alive ? "alive" : "gone");
    return DT_OK;
}
