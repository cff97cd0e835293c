#define _GNU_SOURCE
#include "runner/node_setup/workdir/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"

#include "base/banned.h"

#define PIECE_BYTES ((size_t)262144)
#define NOTE_MS     ((int64_t)3600 * 1000) /* uses within an hour are noted once */

void dt_contents_path(dt_strbuf *out, const char *cache, const char *digest)
{
    dt_strbuf_reset(out);
    dt_strbuf_add_fmt(out, "%s/" DT_CONTENTS_FOLDER "/%s", cache, digest);
}

static bool is_sound(int fd, const char *wanted)
{
    char *piece = dt_malloc(PIECE_BYTES), hex[DT_DIGEST_SIZE] = "";
    dt_digest *digest = NULL;
    ssize_t got = -1;

    if (dt_digest_new(&digest, NULL) == DT_OK) {
        while ((got = read(fd, piece, PIECE_BYTES)) > 0)
            dt_digest_add(digest, piece, (size_t)got);
        dt_digest_get(hex, digest);
    }
    dt_digest_free(digest);
    free(piece);
    return got == 0 && strcmp(hex, wanted) == 0;
}

bool dt_contents_have(const char *cache, const char *digest, int64_t bytes, bool read)
{
    struct stat info;
    dt_strbuf path;
    bool has;
    int fd;

    dt_strbuf_init(&path);
    dt_contents_path(&path, cache, digest);
    fd = open(path.data, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    has = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == bytes &&
          (!read || is_sound(fd, digest));
    if (has && dt_clock_wall_ms() - (int64_t)info.st_mtime * 1000 > NOTE_MS)
        (void)futimens(fd, NULL);
    if (fd >= 0 && !has)
        unlink(path.data);
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&path);
    return has;
}

/* --- writing */

dt_status dt_content_begin(dt_content *out, const char *cache, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_content){.fd = -1};
    dt_strbuf_init(&out->path);
    dt_strbuf_add_fmt(&out->path, "%s/" DT_CONTENTS_FOLDER, cache);
    DT_TRY(dt_file_make_dirs(out->path.data, 0700, err));
    dt_strbuf_add_str(&out->path, "/.new-XXXXXX");
    DT_TRY(dt_digest_new(&out->digest, err));
    out->fd = mkostemp(out->path.data, O_CLOEXEC);
    if (out->fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot make '%s': %s", out->path.data, strerror(errno));
out:
    return st;
}

dt_status dt_content_add(dt_content *content, const void *bytes, size_t length, dt_error *err)
{
    dt_digest_add(content->digest, bytes, length);
    content->bytes += (int64_t)length;
    return dt_file_write_all(content->fd, bytes, length, err);
}

dt_status dt_content_finish(dt_content *content, char *hex, const char *cache, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf last;
    int fd = content->fd;

    dt_strbuf_init(&last);
    dt_digest_get(hex, content->digest);
    content->fd = -1;
    if (close(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", content->path.data, strerror(errno));
    dt_contents_path(&last, cache, hex);
    if (rename(content->path.data, last.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", content->path.data, strerror(errno));
    dt_strbuf_reset(&content->path);
out:
    dt_strbuf_release(&last);
    return st;
}

void dt_content_drop(dt_content *content)
{
    if (content->digest == NULL)
        return; /* not begun */
    if (content->fd >= 0)
        close(content->fd);
    if (content->path.length > 0)
        unlink(content->path.data);
    dt_strbuf_release(&content->path);
    dt_digest_free(content->digest);
    *content = (dt_content){.fd = -1};
}

/* --- copies */

static dt_status copy_bytes(int to, int from, dt_error *err)
{
    dt_status st = DT_OK;
    char *piece;
    ssize_t got;

    do
        got = copy_file_range(from, NULL, to, NULL, (size_t)1 << 30, 0);
    while (got > 0);
    if (got == 0)
        return DT_OK; /* nothing was left; without support it fails before the first byte */
    piece = dt_malloc(PIECE_BYTES);
    while ((got = read(from, piece, PIECE_BYTES)) > 0)
        DT_TRY(dt_file_write_all(to, piece, (size_t)got, err));
    if (got < 0)
        st = DT_FAIL(err, DT_ERR_IO, "cannot read: %s", strerror(errno));
out:
    free(piece);
    return st;
}

dt_status dt_contents_copy(const char *path, const char *cache, const char *digest, int64_t mode,
                           int64_t time_ns, dt_error *err)
{
    const struct timespec time = {.tv_sec = (time_t)(time_ns / 1000000000),
                                  .tv_nsec = (long)(time_ns % 1000000000)};
    const struct timespec times[] = {time, time};
    int from = -1, to = -1;
    dt_status st = DT_OK;
    dt_strbuf source;

    dt_strbuf_init(&source);
    dt_contents_path(&source, cache, digest);
    from = open(source.data, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", source.data, strerror(errno));
    to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        DT_THROW(err, DT_ERR_IO, "cannot make '%s': %s", path, strerror(errno));
    st = copy_bytes(to, from, err);
    if (st != DT_OK)
        dt_error_prefix(err, "cannot write '%s'", path);
    DT_TRY(st);
    if (fchmod(to, (mode_t)mode) != 0 || futimens(to, times) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot set the permissions of '%s': %s", path, strerror(errno));
out:
    if (from >= 0)
        close(from);
    if (to >= 0 && close(to) != 0 && st == DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    if (st != DT_OK && to >= 0)
        unlink(path);
    dt_strbuf_release(&source);
    return st;
}
