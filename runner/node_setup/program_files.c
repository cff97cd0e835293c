#include "runner/node_setup/program_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/memory.h"

#define CACHE_NAME  "programs"
#define CACHE_BYTES ((size_t)256 << 10) /* a larger cache is begun again */
#define SETTLED_NS  ((int64_t)2000000000)
#define FRONT_BYTES 128

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Writes what changes whenever the file changes; a line begins with it. */
static void describe(char *out, const struct stat *info)
{
    snprintf(out, FRONT_BYTES, "%lld %llu %llu %lld %lld ", (long long)info->st_size,
             (unsigned long long)info->st_ino, (unsigned long long)info->st_dev,
             (long long)nanoseconds(&info->st_mtim), (long long)nanoseconds(&info->st_ctim));
}

void dt_program_files_open(dt_program_files *out)
{
    const char *cache;
    dt_arena arena;

    *out = (dt_program_files){.changed = false};
    dt_strbuf_init(&out->path);
    dt_strbuf_init(&out->lines);
    dt_arena_init(&arena, 0);
    if (dt_dir_make(&cache, DT_DIR_CACHE, &arena, NULL) == DT_OK)
        dt_strbuf_add_fmt(&out->path, "%s/" CACHE_NAME, cache);
    if (out->path.length == 0 ||
        dt_file_read(&out->lines, out->path.data, CACHE_BYTES, NULL) != DT_OK)
        dt_strbuf_reset(&out->lines);
    dt_arena_release(&arena);
}

/* Returns true if a line has the file as it is now. */
static bool recall(dt_program_facts *out, const dt_program_files *files, const char *front,
                   const char *path)
{
    size_t length = strlen(front);
    const char *line = files->lines.length > 0 ? files->lines.data : "", *end;

    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char digest[DT_DIGEST_SIZE], glibc[DT_GLIBC_SIZE];
        int used = 0;

        if (strncmp(line, front, length) != 0 ||
            sscanf(line + length, "%32[0-9a-f] %15s %n", digest, glibc, &used) != 2 || used == 0 ||
            strlen(digest) != DT_DIGEST_SIZE - 1)
            continue;
        if ((size_t)(end - line) != length + (size_t)used + strlen(path) ||
            strncmp(line + length + used, path, strlen(path)) != 0)
            continue;
        memcpy(out->digest, digest, sizeof(digest));
        snprintf(out->glibc, sizeof(out->glibc), "%s", strcmp(glibc, "-") == 0 ? "" : glibc);
        return true;
    }
    return false;
}

static void remember(dt_program_files *files, const dt_program_facts *facts, const char *front,
                     const char *path)
{
    if (strchr(path, '\n') != NULL)
        return;
    dt_strbuf_add_fmt(&files->lines, "%s%s %s %s\n", front, facts->digest,
                      facts->glibc[0] != '\0' ? facts->glibc : "-", path);
    files->changed = true;
}

static dt_status read_file(dt_program_facts *out, int fd, const struct stat *info, const char *path,
                           dt_error *err)
{
    void *bytes = mmap(NULL, (size_t)info->st_size, PROT_READ, MAP_PRIVATE, fd, 0);

    if (bytes == MAP_FAILED)
        return DT_FAIL(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    dt_digest_of(out->digest, bytes, (size_t)info->st_size);
    munmap(bytes, (size_t)info->st_size);
    return dt_glibc_highest(out->glibc, path, err);
}

dt_status dt_program_files_look(dt_program_facts *out, dt_program_files *files, const char *path,
                                dt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char front[FRONT_BYTES], again[FRONT_BYTES];
    dt_status st = DT_OK;
    struct stat info, after;
    struct timespec now;

    if (fd < 0 || fstat(fd, &info) != 0 || info.st_size == 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path,
                 fd >= 0 && info.st_size == 0 ? "it is empty" : strerror(errno));
    *out = (dt_program_facts){.bytes = (int64_t)info.st_size};
    describe(front, &info);
    if (recall(out, files, front, path))
        goto out;
    DT_TRY(read_file(out, fd, &info, path, err));
    if (fstat(fd, &after) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0)
        goto out;
    describe(again, &after);
    if (strcmp(front, again) == 0 && nanoseconds(&info.st_ctim) < nanoseconds(&now) - SETTLED_NS)
        remember(files, out, front, path);
out:
    if (fd >= 0)
        close(fd);
    return st;
}

void dt_program_files_close(dt_program_files *files)
{
    dt_strbuf aside;
    bool whole = false;
    int fd = -1;

    dt_strbuf_init(&aside);
    dt_strbuf_add_fmt(&aside, "%s.XXXXXX", files->path.length > 0 ? files->path.data : "");
    if (files->changed && files->path.length > 0)
        fd = mkostemp(aside.data, O_CLOEXEC);
    if (fd >= 0) { /* without a sync: a cache that is lost is only made again */
        whole = dt_file_write_all(fd, files->lines.data, files->lines.length, NULL) == DT_OK;
        whole = close(fd) == 0 && whole && rename(aside.data, files->path.data) == 0;
    }
    if (fd >= 0 && !whole)
        unlink(aside.data);
    dt_strbuf_release(&aside);
    dt_strbuf_release(&files->path);
    dt_strbuf_release(&files->lines);
}
