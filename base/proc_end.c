#include "base/proc_end.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/proc_stat.h"
#include "base/strbuf.h"

#define WORDS_BYTES  ((size_t)4 << 20)
#define LOOK_SECONDS 0.02

/* Returns true if the process matches. The start time is compared before and after the read, so
 * that the words belong to the process that will be killed. */
static bool is_match(int64_t pid, const char *file, dt_proc_match_fn *matches, const void *context,
                     dt_strbuf *words)
{
    dt_proc_stat before, after;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)pid, file);
    return dt_proc_stat_read(&before, pid) && before.state != 'Z' && before.state != 'X' &&
           dt_file_read(words, path, WORDS_BYTES, NULL) == DT_OK &&
           matches(context, before.state, words->data, words->length) &&
           dt_proc_stat_read(&after, pid) && after.start_ticks == before.start_ticks;
}

/* Kills all matching processes and returns their number; with `find`, returns the pid of the first and kills none. */
static int64_t scan(const char *file, dt_proc_match_fn *matches, const void *context,
                    dt_strbuf *words, bool find)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int64_t found = 0;

    while (dir != NULL && !(find && found != 0) && (entry = readdir(dir)) != NULL) {
        char *end;
        int64_t pid = strtoll(entry->d_name, &end, 10);

        if (pid <= 0 || *end != '\0' || pid == getpid() ||
            !is_match(pid, file, matches, context, words))
            continue;
        if (find)
            found = pid;
        else
            found += kill((pid_t)pid, SIGKILL) == 0;
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

int64_t dt_proc_end_all(const char *file, dt_proc_match_fn *matches, const void *context,
                        double seconds)
{
    double until = dt_clock_monotonic_seconds() + seconds;
    dt_strbuf words;
    int64_t left;

    dt_strbuf_init(&words);
    while ((left = scan(file, matches, context, &words, false)) > 0 &&
           dt_clock_monotonic_seconds() < until)
        dt_clock_sleep_seconds(LOOK_SECONDS);
    dt_strbuf_release(&words);
    return left;
}

int64_t dt_proc_find(const char *file, dt_proc_match_fn *matches, const void *context)
{
    dt_strbuf words;
    int64_t found;

    dt_strbuf_init(&words);
    found = scan(file, matches, context, &words, true);
    dt_strbuf_release(&words);
    return found;
}
