#include "runner/channel/detach.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/strbuf.h"
#include "runner/times.h"

enum { LINE_BYTES = 64 };

typedef struct record {
    int64_t count, points, last_ms;
} record;

/* Old starts no longer count; a clock that was set back does not make them older. */
static record read_record(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char line[LINE_BYTES + 1] = "";
    record out = {0};
    int64_t age_ms;

    if (fd >= 0) {
        if (pread(fd, line, LINE_BYTES, 0) <= 0 ||
            sscanf(line, "%" SCNd64 " %" SCNd64 " %" SCNd64, &out.count, &out.points,
                   &out.last_ms) != 3)
            out = (record){0};
        close(fd);
    }
    age_ms = dt_clock_wall_ms() - out.last_ms;
    if (age_ms < 0 || age_ms > (int64_t)dt_times_ms(dt_times()->starts_window_seconds))
        out.count = out.points = 0;
    return out;
}

/* Writes in place, which works on a full disk once the file exists. */
static void write_record(const char *path, const record *start_record, int flags)
{
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    char text[LINE_BYTES], line[LINE_BYTES + 1];
    ssize_t written;

    if (fd < 0)
        return;
    snprintf(text, sizeof(text), "%" PRId64 " %" PRId64 " %" PRId64, start_record->count,
             start_record->points, start_record->last_ms);
    snprintf(line, sizeof(line), "%-63.63s\n", text);
    written = pwrite(fd, line, LINE_BYTES, 0);
    (void)written; /* on failure this start is not counted */
    close(fd);
}

bool dt_starts_follow_crash(const char *log_path)
{
    dt_strbuf words;
    bool found;

    dt_strbuf_init(&words);
    dt_detach_last_words(&words, log_path, 0);
    found = strstr(words.data, DT_CRASH_WORDS) != NULL;
    dt_strbuf_release(&words);
    return found;
}

void dt_starts_add(const char *path, bool bad)
{
    record now = read_record(path);

    now.count++;
    now.points += bad ? DT_STARTS_CRASH : 1;
    now.last_ms = dt_clock_wall_ms();
    write_record(path, &now, O_CREAT);
}

void dt_starts_clear(const char *path)
{
    write_record(path, &(record){0}, 0);
}

bool dt_starts_are_spent(const char *path)
{
    return read_record(path).points >= DT_STARTS_MOST;
}

dt_status dt_starts_check(const char *path, int most, const char *who, const char *log_path,
                          dt_error *err)
{
    record now = read_record(path);
    char again[DT_CLOCK_ISO_SIZE];
    dt_strbuf words;
    dt_status st;

    if (now.points < most)
        return DT_OK;
    dt_strbuf_init(&words);
    dt_detach_last_words(&words, log_path, 0);
    dt_clock_iso(again, now.last_ms + (int64_t)dt_times_ms(dt_times()->starts_window_seconds));
    st = DT_FAIL(err, DT_ERR_IO,
                 "%s ended %lld times in a row without progress and is not started again before "
                 "%s: %s (see '%s')",
                 who, (long long)now.count, again,
                 words.length > 0 ? words.data : "it wrote no message", log_path);
    dt_strbuf_release(&words);
    return st;
}
