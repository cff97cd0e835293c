#include "runner/supervisor/folder/stop_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define MARK_BYTES 40 /* "stopped ATTEMPT", padded with blanks, and a newline */

static dt_status write_mark(int lock, const char *what, int64_t attempt, dt_error *err)
{
    char text[64], line[MARK_BYTES];
    ssize_t wrote;

    snprintf(text, sizeof(text), "%s %lld", what, (long long)attempt);
    snprintf(line, sizeof(line), "%-38.38s\n", text);
    wrote = pwrite(lock, line, MARK_BYTES - 1, 0);
    if (wrote != MARK_BYTES - 1 || fdatasync(lock) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot mark the run as stopped: %s",
                       strerror(wrote >= 0 && wrote < MARK_BYTES - 1 ? ENOSPC : errno));
    return DT_OK;
}

dt_status dt_stop_mark_reserve(int lock, dt_error *err)
{
    struct stat info;

    if (fstat(lock, &info) == 0 && info.st_size >= MARK_BYTES - 1)
        return DT_OK;
    return write_mark(lock, "follow", 0, err);
}

dt_status dt_stop_mark_set(int lock, int64_t attempt, dt_error *err)
{
    return write_mark(lock, "stopped", attempt, err);
}

dt_status dt_stop_mark_clear(int lock, dt_error *err)
{
    return write_mark(lock, "follow", 0, err);
}

dt_stop_mark dt_stop_mark_read(const char *folder, int64_t attempt)
{
    static const char *const words[] = {
        [DT_STOP_MARK_ASKED] = "asked",
        [DT_STOP_MARK_ASKED_NOW] = "asked-now",
        [DT_STOP_MARK_STOPPED] = "stopped",
    };
    dt_stop_mark found = DT_STOP_MARK_NONE;
    dt_strbuf path, text;
    char word[16] = "";
    long long until = 0;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/supervisor.lock", folder);
    if (dt_file_read(&text, path.data, 4096, NULL) == DT_OK &&
        sscanf(text.data, "%15s %lld", word, &until) == 2 && attempt <= until)
        for (int i = DT_STOP_MARK_ASKED; i <= DT_STOP_MARK_STOPPED; i++)
            found = strcmp(word, words[i]) == 0 ? (dt_stop_mark)i : found;
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return found;
}

bool dt_stop_mark_covers(const char *folder, int64_t attempt)
{
    return dt_stop_mark_read(folder, attempt) == DT_STOP_MARK_STOPPED;
}

dt_status dt_stop_mark_ask(const char *folder, int64_t attempt, bool now, dt_error *err)
{
    dt_strbuf path;
    dt_status st;
    int lock;

    if (dt_stop_mark_covers(folder, attempt))
        return DT_OK;
    now = now || dt_stop_mark_read(folder, attempt) == DT_STOP_MARK_ASKED_NOW;
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/supervisor.lock", folder);
    lock = open(path.data, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    st = lock >= 0 ? write_mark(lock, now ? "asked-now" : "asked", attempt, err)
                   : DT_FAIL(err, DT_ERR_IO, "cannot open '%s': %s", path.data, strerror(errno));
    if (lock >= 0)
        close(lock);
    dt_strbuf_release(&path);
    return st;
}
