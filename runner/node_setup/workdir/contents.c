/* contents: the digest of a file's content, cached in CACHE/digests, and the store of contents by digest,
 * CACHE/files. */
#include "runner/node_setup/workdir/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

/* --- the digest of a file */

#define READ_BYTES   ((size_t)1 << 20)
#define TOLD_BYTES   ((int64_t)8 << 20)
#define SETTLED_NS   ((int64_t)2000000000)
#define WAIT_SECONDS 0.2
#define LINE_BYTES   256

static bool is_cancelled(const atomic_bool *cancelled)
{
    return cancelled != NULL && atomic_load(cancelled);
}

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Writes the fields that change whenever the file changes; the cached line begins with them. */
static void describe(char *out, size_t size, const struct stat *info)
{
    snprintf(out, size, "%lld %llu %llu %lld %lld ", (long long)info->st_size,
             (unsigned long long)info->st_ino, (unsigned long long)info->st_dev,
             (long long)nanoseconds(&info->st_mtim), (long long)nanoseconds(&info->st_ctim));
}

static dt_status read_all(char *hex, int fd, const char *path, const atomic_bool *cancelled,
                          bool (*progress)(void *context, int64_t bytes), void *context,
                          dt_error *err)
{
    char *piece = dt_malloc(READ_BYTES);
    int64_t done = 0, told = 0;
    dt_digest *digest = NULL;
    dt_status st = DT_OK;
    ssize_t got;

    DT_TRY(dt_digest_new(&digest, err));
    while ((got = read(fd, piece, READ_BYTES)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
        dt_digest_add(digest, piece, (size_t)got);
        done += got;
        if (is_cancelled(cancelled))
            DT_THROW(err, DT_ERR_BUSY, "given up");
        if (progress != NULL && done - told >= TOLD_BYTES) {
            told = done;
            if (!progress(context, done))
                DT_THROW(err, DT_ERR_BUSY, "given up");
        }
    }
    dt_digest_get(hex, digest);
out:
    dt_digest_free(digest);
    free(piece);
    return st;
}

/* Opens and locks the path's cache entry; -1 if there is none. */
static dt_status open_entry(int *entry, const char *path, const char *cache,
                            const atomic_bool *cancelled,
                            bool (*progress)(void *context, int64_t bytes), void *context,
                            dt_error *err)
{
    char name[DT_DIGEST_SIZE];
    char *absolute = cache != NULL ? realpath(path, NULL) : NULL;
    dt_status st = DT_OK;
    dt_strbuf file;

    *entry = -1;
    dt_strbuf_init(&file);
    if (absolute == NULL)
        goto out;
    dt_digest_of(name, absolute, strlen(absolute));
    dt_strbuf_add_fmt(&file, "%s/digests", cache);
    if (dt_file_make_dirs(file.data, 0700, NULL) != DT_OK)
        goto out;
    dt_strbuf_add_fmt(&file, "/%s", name);
    *entry = open(file.data, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (*entry >= 0 && flock(*entry, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) { /* the file system does not support locks */
            close(*entry);
            *entry = -1;
        } else if (is_cancelled(cancelled) || (progress != NULL && !progress(context, 0))) {
            DT_THROW(err, DT_ERR_BUSY, "given up");
        } else {
            dt_clock_sleep_seconds(WAIT_SECONDS);
        }
    }
out:
    if (st != DT_OK && *entry >= 0) {
        close(*entry);
        *entry = -1;
    }
    free(absolute);
    dt_strbuf_release(&file);
    return st;
}

static bool recall(char *hex, int entry, const char *front)
{
    char line[LINE_BYTES] = "";
    size_t length = strlen(front);
    ssize_t got = pread(entry, line, sizeof(line) - 1, 0);

    /* A line that was written completely ends with a newline. */
    if (got != (ssize_t)(length + DT_DIGEST_SIZE) || strncmp(line, front, length) != 0 ||
        strspn(line + length, "0123456789abcdef") != DT_DIGEST_SIZE - 1 || line[got - 1] != '\n')
        return false;
    memcpy(hex, line + length, DT_DIGEST_SIZE - 1);
    hex[DT_DIGEST_SIZE - 1] = '\0';
    (void)futimens(entry, NULL); /* so that remote_helper/cache.c sees it as used */
    return true;
}

static void remember(int entry, const char *front, const char *hex)
{
    char line[LINE_BYTES];
    int length = snprintf(line, sizeof(line), "%s%s\n", front, hex);

    if (ftruncate(entry, 0) != 0 || pwrite(entry, line, (size_t)length, 0) != length)
        (void)!ftruncate(entry, 0);
}

dt_status dt_content_digest(char *hex, const char *path, const char *cache,
                            const atomic_bool *cancelled,
                            bool (*progress)(void *context, int64_t bytes), void *context,
                            dt_error *err)
{
    char before[LINE_BYTES / 2], after[LINE_BYTES / 2];
    int64_t now_ns = dt_clock_wall_ms() * 1000000;
    int fd = -1, entry = -1;
    dt_status st = DT_OK;
    struct stat info;

    DT_TRY(open_entry(&entry, path, cache, cancelled, progress, context, err));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    describe(before, sizeof(before), &info);
    if (entry >= 0 && recall(hex, entry, before))
        goto out;
    DT_TRY(read_all(hex, fd, path, cancelled, progress, context, err));
    if (entry < 0 || fstat(fd, &info) != 0)
        goto out;
    describe(after, sizeof(after), &info);
    if (strcmp(before, after) == 0 && nanoseconds(&info.st_ctim) < now_ns - SETTLED_NS)
        remember(entry, before, hex);
out:
    if (fd >= 0)
        close(fd);
    if (entry >= 0)
        close(entry);
    return st;
}

/* --- the store */

#define PIECE_BYTES ((size_t)262144)
#define HOLE_BYTES  ((ptrdiff_t)4096)
#define SMALL_BYTES 65536
#define NOTE_MS     ((int64_t)3600 * 1000) /* uses within an hour are noted once */

void dt_contents_path(dt_strbuf *out, const char *cache, const char *digest)
{
    dt_strbuf_reset(out);
    dt_strbuf_add_fmt(out, "%s/" DT_CONTENTS_FOLDER "/%s", cache, digest);
}

/* Returns true if the file's first `bytes` bytes have this digest. */
static bool is_sound(int fd, const char *wanted, int64_t bytes)
{
    char *piece = dt_malloc(PIECE_BYTES), hex[DT_DIGEST_SIZE] = "";
    dt_digest *digest = NULL;
    ssize_t got;

    if (dt_digest_new(&digest, NULL) == DT_OK) {
        while (bytes > 0 && (got = read(fd, piece, PIECE_BYTES)) > 0) {
            dt_digest_add(digest, piece, (size_t)got);
            bytes -= got;
        }
        dt_digest_get(hex, digest);
    }
    dt_digest_free(digest);
    free(piece);
    return bytes == 0 && strcmp(hex, wanted) == 0;
}

bool dt_contents_have(const char *cache, const char *digest, int64_t bytes, bool read)
{
    struct stat info;
    bool exists, has;
    dt_strbuf path;
    int fd = -1;

    dt_strbuf_init(&path);
    dt_contents_path(&path, cache, digest);
    exists = lstat(path.data, &info) == 0;
    has = exists && S_ISREG(info.st_mode) && info.st_size == bytes;
    if (has && read) {
        fd = open(path.data, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        has = fd >= 0 && is_sound(fd, digest, bytes);
    }
    if (has && dt_clock_wall_ms() - (int64_t)info.st_mtime * 1000 > NOTE_MS)
        (void)utimensat(AT_FDCWD, path.data, NULL, AT_SYMLINK_NOFOLLOW);
    if (exists && !has)
        unlink(path.data);
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&path);
    return has;
}

bool dt_contents_is_at(const char *path, const char *digest, int64_t bytes)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    bool is = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == bytes &&
              is_sound(fd, digest, bytes);

    if (fd >= 0)
        close(fd);
    return is;
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
    return dt_sparse_write(content->fd, bytes, length, err);
}

dt_status dt_content_finish(dt_content *content, char *hex, const char *cache, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf last;
    int fd = content->fd;

    dt_strbuf_init(&last);
    dt_digest_get(hex, content->digest);
    DT_TRY(dt_sparse_end(fd, err));
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

static dt_status copy_range(int to, int from, off_t at, off_t end, dt_error *err)
{
    dt_status st = DT_OK;
    char *piece = NULL;
    ssize_t got;

    while (at < end) {
        off_t there = at;

        got = copy_file_range(from, &at, to, &there, (size_t)(end - at), 0);
        if (got <= 0)
            break; /* not supported here, or the end of the file */
    }
    if (at < end)
        piece = dt_malloc(PIECE_BYTES);
    while (at < end) {
        got = pread(from, piece, PIECE_BYTES, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            DT_THROW(err, DT_ERR_IO, "cannot read: %s", strerror(errno));
        if (got == 0)
            break;
        if (lseek(to, at, SEEK_SET) < 0)
            DT_THROW(err, DT_ERR_IO, "%s", strerror(errno));
        DT_TRY(dt_file_write_all(to, piece, (size_t)got, err));
        at += got;
    }
out:
    free(piece);
    return st;
}

/* Copies a file without holes. For a small one, copy_file_range takes longer than a read and a write. */
static dt_status copy_small(int to, int from, dt_error *err)
{
    char piece[SMALL_BYTES];
    dt_status st = DT_OK;
    ssize_t got;

    while ((got = read(from, piece, sizeof(piece))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            DT_THROW(err, DT_ERR_IO, "cannot read: %s", strerror(errno));
        DT_TRY(dt_file_write_all(to, piece, (size_t)got, err));
        if (got < (ssize_t)sizeof(piece))
            break; /* the end of a regular file */
    }
out:
    return st;
}

/* Copies what is between the holes. */
static dt_status copy_bytes(int to, int from, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;

    if (fstat(from, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "%s", strerror(errno));
    if (info.st_size <= SMALL_BYTES && (int64_t)info.st_blocks * 512 >= info.st_size)
        return copy_small(to, from, err);
    if (ftruncate(to, info.st_size) != 0)
        DT_THROW(err, DT_ERR_IO, "%s", strerror(errno));
    for (off_t at = 0, end; at < info.st_size; at = end) {
        off_t data = lseek(from, at, SEEK_DATA);

        if (data < 0 && errno == ENXIO)
            break; /* a hole up to the end */
        at = data >= 0 ? data : at;
        end = data >= 0 ? lseek(from, at, SEEK_HOLE) : info.st_size;
        if (end < 0 || end > info.st_size)
            end = info.st_size;
        DT_TRY(copy_range(to, from, at, end, err));
    }
out:
    return st;
}

static dt_status set_attributes(int fd, const char *path, int64_t mode, int64_t time_ns,
                                dt_error *err)
{
    const struct timespec time = {.tv_sec = (time_t)(time_ns / 1000000000),
                                  .tv_nsec = (long)(time_ns % 1000000000)};
    const struct timespec times[] = {time, time};

    if (fchmod(fd, (mode_t)mode) != 0 || futimens(fd, times) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot set the permissions of '%s': %s", path,
                       strerror(errno));
    return DT_OK;
}

dt_status dt_contents_copy_file(const char *path, const char *source, int64_t mode, int64_t time_ns,
                                dt_error *err)
{
    int from = open(source, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), to = -1;
    dt_status st = DT_OK;

    if (from < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", source, strerror(errno));
    to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        DT_THROW(err, DT_ERR_IO, "cannot make '%s': %s", path, strerror(errno));
    st = copy_bytes(to, from, err);
    if (st != DT_OK)
        dt_error_prefix(err, "cannot write '%s'", path);
    DT_TRY(st);
    DT_TRY(set_attributes(to, path, mode, time_ns, err));
out:
    if (from >= 0)
        close(from);
    if (to >= 0 && close(to) != 0 && st == DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    if (st != DT_OK && to >= 0)
        unlink(path);
    return st;
}

dt_status dt_contents_copy(const char *path, const char *cache, const char *digest, int64_t mode,
                           int64_t time_ns, dt_error *err)
{
    dt_strbuf source;
    dt_status st;

    dt_strbuf_init(&source);
    dt_contents_path(&source, cache, digest);
    st = dt_contents_copy_file(path, source.data, mode, time_ns, err);
    dt_strbuf_release(&source);
    return st;
}

dt_status dt_contents_move(const char *path, const char *cache, const char *digest, int64_t mode,
                           int64_t time_ns, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf source;
    int fd = -1;

    dt_strbuf_init(&source);
    dt_contents_path(&source, cache, digest);
    if (rename(source.data, path) != 0) {
        if (errno != EXDEV)
            DT_THROW(err, DT_ERR_IO, "cannot move '%s' to '%s': %s", source.data, path,
                     strerror(errno));
        DT_TRY(dt_contents_copy_file(path, source.data, mode, time_ns, err));
        unlink(source.data);
        goto out;
    }
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    DT_TRY(set_attributes(fd, path, mode, time_ns, err));
out:
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&source);
    return st;
}

/* --- holes */

static bool is_zero(const char *bytes, size_t length)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

dt_status dt_sparse_write(int fd, const void *bytes, size_t length, dt_error *err)
{
    const char *at = bytes, *end = at + length, *from = at;
    dt_status st = DT_OK;

    for (; at < end; at += HOLE_BYTES) {
        size_t now = end - at < HOLE_BYTES ? (size_t)(end - at) : (size_t)HOLE_BYTES;

        if (now < HOLE_BYTES || !is_zero(at, now))
            continue;
        DT_TRY(dt_file_write_all(fd, from, (size_t)(at - from), err));
        if (lseek(fd, (off_t)now, SEEK_CUR) < 0)
            DT_THROW(err, DT_ERR_IO, "cannot write: %s", strerror(errno));
        from = at + now;
    }
    DT_TRY(dt_file_write_all(fd, from, (size_t)(end - from), err));
out:
    return st;
}

dt_status dt_sparse_end(int fd, dt_error *err)
{
    off_t end = lseek(fd, 0, SEEK_CUR);

    return end >= 0 && ftruncate(fd, end) == 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_IO, "cannot write: %s", strerror(errno));
}
