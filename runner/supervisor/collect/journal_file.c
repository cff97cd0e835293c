#include "runner/supervisor/collect/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runner/channel/journal_line.h"

#define READ_BYTES ((size_t)256 << 10)

dt_status dt_journal_file_open(dt_journal_file *out, const char *path, dt_error *err)
{
    *out = (dt_journal_file){.path = path, .last = -1};
    dt_strbuf_init(&out->buffer);
    out->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (out->fd >= 0)
        return DT_OK;
    return DT_FAIL(err, errno == ENOENT ? DT_ERR_NOT_FOUND : DT_ERR_IO, "cannot read '%s': %s",
                   path, strerror(errno));
}

void dt_journal_file_close(dt_journal_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    dt_strbuf_release(&file->buffer);
}

/* Reads more of the file into the buffer; *more is false at its end. */
static dt_status fill(dt_journal_file *file, bool *more, dt_error *err)
{
    char bytes[READ_BYTES];
    off_t data;
    ssize_t got;

    dt_strbuf_remove_front(&file->buffer, file->taken);
    file->taken = 0;
    data = lseek(file->fd, (off_t)file->at, SEEK_DATA);
    if (data > (off_t)file->at) {
        dt_strbuf_add_char(&file->buffer, '\n');
        file->at = data;
    }
    do
        got = pread(file->fd, bytes, sizeof(bytes), (off_t)file->at);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot read '%s': %s", file->path, strerror(errno));
    *more = got > 0;
    for (ssize_t i = 0; i < got; i++)
        if (bytes[i] == '\0') /* a hole: no line spans it */
            bytes[i] = '\n';
    if (got > 0)
        dt_strbuf_add(&file->buffer, bytes, (size_t)got);
    file->at += got > 0 ? got : 0;
    return DT_OK;
}

dt_status dt_journal_file_next(dt_journal_file *file, const char **line, size_t *length,
                               dt_error *err)
{
    dt_status st = DT_OK;
    bool more = true;

    *line = NULL;
    while (more) {
        const char *from = file->buffer.data + file->taken;
        const char *end = memchr(from, '\n', file->buffer.length - file->taken);
        int64_t sequence;

        if (end == NULL) {
            DT_TRY(fill(file, &more, err));
            continue;
        }
        file->taken += (size_t)(end - from) + 1;
        sequence = end > from ? dt_journal_line_sequence(from, (size_t)(end - from)) : -1;
        if (sequence <= file->last)
            continue;
        file->last = sequence;
        *line = from;
        *length = (size_t)(end - from);
        break;
    }
out:
    return st;
}
