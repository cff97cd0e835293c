/* file: reads, writes, renames, locks and removes files; the checksum of records in files. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns true for the name of a descriptor that this process inherited. Reading from such a
 * pipe ends, since its writer is running or has ended. */
static bool is_inherited(const char *path)
{
    static const char *const folders[] = {"/dev/stdin", "/dev/fd/", "/proc/self/fd/"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

/* Opens a regular file or an inherited pipe, without waiting for the other end of a pipe. */
static dt_status open_to_read(int *fd, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;

    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
        return DT_FAIL(err, errno == ENOENT ? DT_ERR_NOT_FOUND : DT_ERR_IO, "cannot open '%s': %s",
                       path, strerror(errno));
    if (fstat(*fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': it is a directory", path);
    if (!S_ISREG(info.st_mode) && !(S_ISFIFO(info.st_mode) && is_inherited(path)))
        DT_THROW(err, DT_ERR_IO,
                 "cannot read '%s': it is not a regular file (write its contents to one first)",
                 path);
    if (S_ISFIFO(info.st_mode))
        (void)fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) & ~O_NONBLOCK);
out:
    if (st != DT_OK) {
        close(*fd);
        *fd = -1;
    }
    return st;
}

dt_status dt_file_read_fd(dt_strbuf *out, int fd, const char *name, size_t max_bytes, dt_error *err)
{
    dt_status st = DT_OK;
    char chunk[65536];
    ssize_t got;

    dt_strbuf_reset(out);
    while ((got = read(fd, chunk, sizeof(chunk))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", name, strerror(errno));
        if ((size_t)got > max_bytes - out->length)
            DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s' is larger than %zu bytes", name, max_bytes);
        dt_strbuf_add(out, chunk, (size_t)got);
    }
out:
    return st;
}

dt_status dt_file_read(dt_strbuf *out, const char *path, size_t max_bytes, dt_error *err)
{
    dt_status st = DT_OK;
    int fd = -1;

    dt_strbuf_reset(out);
    DT_TRY(open_to_read(&fd, path, err));
    DT_TRY(dt_file_read_fd(out, fd, path, max_bytes, err));
out:
    if (fd >= 0)
        close(fd);
    return st;
}

dt_status dt_file_write_all(int fd, const void *bytes, size_t length, dt_error *err)
{
    const char *at = bytes;

    while (length > 0) {
        ssize_t put = write(fd, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return DT_FAIL(err, DT_ERR_IO, "cannot write: %s", strerror(errno));
        at += put;
        length -= (size_t)put;
    }
    return DT_OK;
}

/* Returns the directory part of a path; "." if there is none. */
static void directory_of(dt_strbuf *out, const char *path)
{
    const char *slash = strrchr(path, '/');

    dt_strbuf_reset(out);
    if (slash == NULL)
        dt_strbuf_add_char(out, '.');
    else
        dt_strbuf_add(out, path, slash == path ? 1 : (size_t)(slash - path));
}

dt_status dt_file_write_atomic(const char *path, const void *bytes, size_t length, mode_t mode,
                               dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf temporary, directory;
    int fd = -1;

    dt_strbuf_init(&temporary);
    dt_strbuf_init(&directory);
    dt_strbuf_add_fmt(&temporary, "%s.%ld.tmp", path, (long)getpid());
    fd = open(temporary.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot create '%s': %s", temporary.data, strerror(errno));
    DT_TRY(dt_file_write_all(fd, bytes, length, err));
    if (fsync(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot sync: %s", strerror(errno));
    if (close(fd) != 0) {
        fd = -1;
        DT_THROW(err, DT_ERR_IO, "cannot close: %s", strerror(errno));
    }
    fd = -1;
    if (rename(temporary.data, path) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename it into place: %s", strerror(errno));
    directory_of(&directory, path);
    DT_TRY(dt_file_sync_dir(directory.data, err));
out:
    if (fd >= 0)
        close(fd);
    if (st != DT_OK) {
        dt_error_prefix(err, "'%s'", path);
        unlink(temporary.data);
    }
    dt_strbuf_release(&temporary);
    dt_strbuf_release(&directory);
    return st;
}

dt_status dt_file_make_dirs(const char *path, mode_t mode, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    dt_strbuf part;

    dt_strbuf_init(&part);
    for (const char *at = path;; at++) {
        if ((*at == '/' && at != path) || *at == '\0') {
            dt_strbuf_reset(&part);
            dt_strbuf_add(&part, path, (size_t)(at - path));
            if (mkdir(part.data, mode) != 0 && errno != EEXIST && *at == '\0')
                DT_THROW(err, DT_ERR_IO, "cannot make the directory '%s': %s", path,
                         strerror(errno));
        }
        if (*at == '\0')
            break;
    }
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        DT_THROW(err, DT_ERR_IO, "cannot make the directory '%s': it exists and is not a directory",
                 path);
out:
    dt_strbuf_release(&part);
    return st;
}

dt_status dt_file_sync_dir(const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open the directory '%s': %s", path, strerror(errno));
    if (fsync(fd) != 0 && errno != EINVAL) /* EINVAL: the file system does not support it */
        st = DT_FAIL(err, DT_ERR_IO, "cannot sync the directory '%s': %s", path, strerror(errno));
    close(fd);
    return st;
}

/* Renames without replacing: with renameat2, or link and unlink where the file system does not
 * support it. Fails with EEXIST if `to` exists. */
static bool rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    if ((errno != EINVAL && errno != ENOSYS) || link(from, to) != 0)
        return false;
    (void)unlink(from);
    return true;
}

dt_status dt_file_name(const char *from, const char *to, bool replace, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf directory;

    dt_strbuf_init(&directory);
    if (!(replace ? rename(from, to) == 0 : rename_new(from, to)))
        DT_THROW(err, errno == EEXIST ? DT_ERR_BUSY : DT_ERR_IO, "cannot write '%s': %s", to,
                 strerror(errno));
    directory_of(&directory, to);
    st = dt_file_sync_dir(directory.data, err);
    if (st != DT_OK && !replace)
        (void)rename(to, from);
out:
    dt_strbuf_release(&directory);
    return st;
}

static dt_status remove_at(int parent, const char *name, const char *shown, dt_error *err)
{
    dt_status st = DT_OK;
    struct dirent *entry;
    DIR *dir = NULL;
    int fd;

    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return DT_OK;
    if (errno != EISDIR && errno != EPERM)
        return DT_FAIL(err, DT_ERR_IO, "cannot remove '%s': %s", shown, strerror(errno));
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return DT_OK; /* another process is removing it too */
    if (fd < 0 || (dir = fdopendir(fd)) == NULL) {
        st = DT_FAIL(err, DT_ERR_IO, "cannot remove '%s': %s", shown, strerror(errno));
        if (fd >= 0)
            close(fd);
        return st;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        /* Continue with the other entries; err keeps the first failure. */
        if (remove_at(fd, entry->d_name, entry->d_name, err) != DT_OK)
            st = DT_ERR_IO;
    }
    if (st == DT_OK && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        st = DT_FAIL(err, DT_ERR_IO, "cannot remove '%s': %s", shown, strerror(errno));
    closedir(dir);
    return st;
}

dt_status dt_file_remove_tree(const char *path, dt_error *err)
{
    return remove_at(AT_FDCWD, path, path, err);
}

bool dt_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

dt_status dt_file_lock(int *fd, const char *path, dt_error *err)
{
    dt_status st = DT_OK;

    *fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
        st = errno == EWOULDBLOCK
                 ? DT_FAIL(err, DT_ERR_BUSY, "'%s' is held by another process", path)
                 : DT_FAIL(err, DT_ERR_IO, "cannot lock '%s': %s", path, strerror(errno));
        close(*fd);
        *fd = -1;
    }
    return st;
}

/* --- the Castagnoli CRC */

/* "123456789" gives 0xE3069283. Handles four bits at a time: a table of 16 entries needs no initialization,
 * and the records are small. */
static uint32_t crc32c(const void *bytes, size_t length)
{
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                       0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                       0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const uint8_t *at = bytes;
    uint32_t sum = 0xffffffff;

    for (size_t i = 0; i < length; i++) {
        sum = table[(sum ^ at[i]) & 15] ^ (sum >> 4);
        sum = table[(sum ^ (at[i] >> 4)) & 15] ^ (sum >> 4);
    }
    return ~sum;
}

uint32_t dt_crc32c_masked(const void *bytes, size_t length)
{
    uint32_t sum = crc32c(bytes, length);

    return ((sum >> 15) | (sum << 17)) + 0xa282ead8;
}
