#include "runner/supervisor/client/client_int.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/strbuf.h"

#define KILLED_SECONDS 5.0
#define TRY_SECONDS    0.005
#define LINE_BYTES     256
#define WORDS_BYTES    ((size_t)4096)

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

/* Parses lines like "3: FLOCK ADVISORY WRITE 731 08:01:5112 0 EOF" of /proc/locks. Inode numbers
 * are unique only within a file system, so the holder's command line is checked too. */
pid_t dt_lock_holder_find(const char *lock, const char *run)
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

bool dt_lock_holder_kill(pid_t pid, const char *lock, const char *run)
{
    double until = dt_clock_monotonic_seconds() + KILLED_SECONDS;
    bool ended;

    kill(pid, SIGKILL);
    while (!(ended = dt_lock_holder_find(lock, run) != pid) && dt_clock_monotonic_seconds() < until)
        dt_clock_sleep_seconds(TRY_SECONDS);
    return ended;
}
