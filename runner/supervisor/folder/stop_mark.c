#define _GNU_SOURCE
#include "runner/supervisor/folder/stop_mark.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#include "base/banned.h"

#define MARK_BYTES 40 /* "stopped ATTEMPT", filled up with blanks, and a line's end */

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

bool dt_stop_mark_covers(const char *folder, int64_t attempt)
{
    dt_strbuf path, text;
    long long until = 0;
    bool found;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/supervisor.lock", folder);
    found = dt_file_read(&text, path.data, 4096, NULL) == DT_OK &&
            sscanf(text.data, "stopped %lld", &until) == 1 && attempt <= until;
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return found;
}
