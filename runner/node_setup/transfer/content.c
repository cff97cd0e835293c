#include "runner/node_setup/transfer/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"

#define PIECE_BYTES  ((size_t)1 << 20)
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
    char *piece = dt_malloc(PIECE_BYTES);
    int64_t done = 0, told = 0;
    dt_digest *digest = NULL;
    dt_status st = DT_OK;
    ssize_t got;

    DT_TRY(dt_digest_new(&digest, err));
    while ((got = read(fd, piece, PIECE_BYTES)) != 0) {
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
    (void)futimens(entry, NULL); /* so that prune.c sees it as used */
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
