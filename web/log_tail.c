#define _GNU_SOURCE
#include "web/log_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

/* The start of the last `lines` lines in text[0, length), which ends in a line feed. */
static size_t tail_start(const char *text, size_t length, int64_t lines)
{
    size_t at = length;

    while (lines > 0 && at > 0) {
        const char *before = memrchr(text, '\n', at - 1); /* the end of the line before */

        at = before == NULL ? 0 : (size_t)(before - text) + 1;
        lines--;
    }
    return at;
}

static dt_status read_at(char *out, int fd, int64_t from, size_t length, size_t *got, dt_error *err)
{
    for (*got = 0; *got < length;) {
        ssize_t n = pread(fd, out + *got, length - *got, (off_t)(from + (int64_t)*got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return DT_FAIL(err, DT_ERR_IO, "cannot read the log: %s", strerror(errno));
        if (n == 0)
            break; /* it was cut short meanwhile */
        *got += (size_t)n;
    }
    return DT_OK;
}

dt_status dt_log_tail(dt_strbuf *out, const char *path, int64_t lines, int64_t valid_bytes,
                      dt_error *err)
{
    dt_status st = DT_OK;
    char *text = NULL, *end;
    int64_t size, from;
    struct stat info;
    size_t got, start;
    int fd;

    dt_strbuf_reset(out);
    /* not through a link, and without waiting on a pipe: only a log is wanted */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return DT_OK;
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        DT_THROW(err, DT_ERR_IO, "cannot read the log: %s",
                 fd < 0 ? strerror(errno) : "it is not a file");
    size = info.st_size;
    if (valid_bytes > 0 && valid_bytes < size)
        size = valid_bytes;
    from = size > DT_LOG_TAIL_BYTES ? size - DT_LOG_TAIL_BYTES : 0;
    text = malloc((size_t)(size - from) + 1);
    if (text == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "cannot read the log: no memory");
    DT_TRY(read_at(text, fd, from, (size_t)(size - from), &got, err));
    end = memrchr(text, '\n', got);
    if (end == NULL)
        goto out;
    got = (size_t)(end - text) + 1;
    start = tail_start(text, got, lines);
    if (start == 0 && from > 0) { /* the first line may be half of one */
        char *first = memchr(text, '\n', got);
        start = (size_t)(first - text) + 1;
    }
    dt_strbuf_add(out, text + start, got - start);
out:
    free(text);
    if (fd >= 0)
        close(fd);
    return st;
}
