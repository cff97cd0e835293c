#define _GNU_SOURCE
#include "runner/supervisor/client/outdated.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "runner/channel/socket.h"

#include "base/banned.h"

#define LISTEN_SECONDS 2.0
#define KILLED_SECONDS 5.0
#define TRY_SECONDS    0.1
#define LINE_BYTES     256
#define WORDS_BYTES    ((size_t)4096)

static bool listens(const char *folder)
{
    int fd = -1;
    bool found = dt_socket_connect(&fd, folder, "control.sock", NULL) == DT_OK;

    if (fd >= 0)
        close(fd);
    return found;
}

static bool is_free(const char *lock)
{
    int fd = -1;
    bool found = dt_file_lock(&fd, lock, NULL) == DT_OK;

    if (fd >= 0)
        close(fd);
    return found;
}

/* Who has the file locked, as /proc/locks tells: "3: FLOCK  ADVISORY  WRITE 731 08:01:5112 0 EOF". 0: nobody,
 * or nobody that can be seen from here. */
static pid_t find_holder(const char *lock)
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
            inode == info.st_ino)
            pid = seen;
    if (locks != NULL)
        fclose(locks);
    return pid > 0 ? pid : 0;
}

/* Whether it is "... supervise RUN". */
static bool supervises(pid_t pid, const char *run)
{
    dt_strbuf words, want;
    char path[32];
    bool found = false;

    dt_strbuf_init(&words);
    dt_strbuf_init(&want);
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    dt_strbuf_add_fmt(&want, "%csupervise%c%s", 0, 0, run);
    if (dt_file_read(&words, path, WORDS_BYTES, NULL) == DT_OK)
        found = memmem(words.data, words.length, want.data, want.length + 1) != NULL;
    dt_strbuf_release(&words);
    dt_strbuf_release(&want);
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
    pid = find_holder(lock.data);
    if (pid == 0 || is_ours(pid) || !supervises(pid, run))
        goto out;
    while (dt_clock_monotonic_seconds() < until) {
        if (listens(folder))
            goto out;
        dt_clock_sleep_seconds(TRY_SECONDS);
    }
    if (find_holder(lock.data) != pid)
        goto out;
    dt_log_warn(
        "the supervisor of run '%s' (process %d) is another dtrun's and listens to nobody: it is "
        "ended, and one of this dtrun goes on",
        run, (int)pid);
    kill(pid, SIGKILL);
    until = dt_clock_monotonic_seconds() + KILLED_SECONDS;
    while (!(ended = is_free(lock.data)) && dt_clock_monotonic_seconds() < until)
        dt_clock_sleep_seconds(TRY_SECONDS);
out:
    dt_strbuf_release(&lock);
    return ended;
}
