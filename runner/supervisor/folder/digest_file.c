#include "runner/supervisor/folder/digest_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"

static dt_status write_at(int fd, const char *path, int64_t offset, const char *text, dt_error *err)
{
    size_t left = strlen(text);

    while (left > 0) {
        ssize_t put = pwrite(fd, text, left, (off_t)offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
        text += put;
        offset += put;
        left -= (size_t)put;
    }
    if (fdatasync(fd) != 0 && errno != EINVAL)
        return DT_FAIL(err, DT_ERR_IO, "cannot sync '%s': %s", path, strerror(errno));
    return DT_OK;
}

dt_status dt_digest_file_write(const char *folder, int64_t attempt, int64_t rank, int64_t offset,
                               const char *text, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path;
    int fd = -1;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/" DT_DIGEST_FOLDER, folder);
    DT_TRY(dt_file_make_dirs(path.data, 0700, err));
    dt_strbuf_add_fmt(&path, "/" DT_DIGEST_NAME, (long long)attempt, (long long)rank);
    fd = open(path.data, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot open '%s': %s", path.data, strerror(errno));
    DT_TRY(write_at(fd, path.data, offset < 0 ? 0 : offset, text, err));
out:
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&path);
    return st;
}
