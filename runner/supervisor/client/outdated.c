#define _GNU_SOURCE
#include "runner/supervisor/client/client_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "runner/channel/socket.h"

#include "base/banned.h"

#define LISTEN_SECONDS 2.0
#define TRY_SECONDS    0.1

static bool listens(const char *folder)
{
    int fd = -1;
    bool found = dt_socket_connect(&fd, folder, "control.sock", NULL) == DT_OK;

    if (fd >= 0)
        close(fd);
    return found;
}

static bool is_ours(pid_t pid)
{
    struct stat theirs, ours;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return stat(path, &theirs) != 0 || stat("/proc/self/exe", &ours) != 0 ||
           (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
}

bool dt_outdated_end(const char *run, const char *folder)
{
    double until = dt_clock_monotonic_seconds() + LISTEN_SECONDS;
    dt_strbuf lock;
    bool ended = false;
    pid_t pid;

    dt_strbuf_init(&lock);
    dt_strbuf_add_fmt(&lock, "%s/supervisor.lock", folder);
    pid = dt_lock_holder_find(lock.data, run);
    if (pid == 0 || is_ours(pid))
        goto out;
    while (dt_clock_monotonic_seconds() < until) {
        if (listens(folder))
            goto out;
        dt_clock_sleep_seconds(TRY_SECONDS);
    }
    if (dt_lock_holder_find(lock.data, run) != pid)
        goto out;
    dt_log_warn(
        "the supervisor of run '%s' (process %d) is another dtrun's and listens to nobody: it is "
        "ended, and one of this dtrun continues",
        run, (int)pid);
    ended = dt_lock_holder_kill(pid, lock.data, run);
out:
    dt_strbuf_release(&lock);
    return ended;
}
