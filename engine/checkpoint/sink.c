/* sink: writes the files of a checkpoint, through system calls that a test can replace. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "engine/checkpoint/checkpoint_int.h"
#include "engine/progress.h"

/* --- the system calls */

static int system_make_dir(void *self, const char *path, mode_t mode)
{
    return mkdir(path, mode);
}

static int system_open(void *self, const char *path, int flags, mode_t mode)
{
    return open(path, flags, mode);
}

static ssize_t system_write(void *self, int fd, const void *bytes, size_t length)
{
    return write(fd, bytes, length);
}

static int system_sync(void *self, int fd)
{
    return fsync(fd);
}

static int system_close(void *self, int fd)
{
    return close(fd);
}

static int system_rename(void *self, const char *from, const char *to)
{
    return rename(from, to);
}

const dt_checkpoint_io dt_checkpoint_io_system = {.make_dir = system_make_dir,
                                                  .open = system_open,
                                                  .write = system_write,
                                                  .sync = system_sync,
                                                  .close = system_close,
                                                  .rename = system_rename};

dt_status dt_checkpoint_io_sync_dir(const dt_checkpoint_io *io, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    int fd = io->open(io->self, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open the directory '%s': %s", path, strerror(errno));
    if (io->sync(io->self, fd) != 0 &&
        errno != EINVAL) /* EINVAL: the file system cannot sync directories */
        st = DT_FAIL(err, DT_ERR_IO, "cannot sync the directory '%s': %s", path, strerror(errno));
    io->close(io->self, fd);
    return st;
}

/* --- one file, front to back */

#define BLOCK_BYTES ((size_t)1 << 20) /* digested and collected while in the processor's cache */
/* O_DIRECT: address, length and offset must be multiples of this */
#define DISK_BYTES ((size_t)4096)

static dt_status failed(const dt_checkpoint_sink *sink, const char *what, dt_error *err)
{
    const char *advice = errno == ENOSPC || errno == EDQUOT
                             ? "; free some space, or lower checkpoint.keep"
                         : errno == EFBIG ? "; raise the file size limit ('ulimit -f')"
                                          : "";

    return DT_FAIL(err, DT_ERR_IO, "cannot %s '%s': %s%s", what, sink->path, strerror(errno),
                   advice);
}

/* Set whether writes bypass the page cache; no effect if the file system refuses. */
static void set_direct(dt_checkpoint_sink *sink, bool on)
{
    int flags = fcntl(sink->fd, F_GETFL);

    flags = flags < 0 ? 0 : on ? flags | O_DIRECT : flags & ~O_DIRECT;
    sink->direct = fcntl(sink->fd, F_SETFL, flags) == 0 && on;
}

/* True for NFS, where each direct write would wait for the server's disk. */
static bool better_cached(int fd)
{
    struct statfs info;

    return fstatfs(fd, &info) == 0 && info.f_type == NFS_SUPER_MAGIC;
}

dt_status dt_checkpoint_sink_open(dt_checkpoint_sink *out, const dt_checkpoint_io *io,
                                  const char *path, dt_error *err)
{
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->io = io;
    out->path = path;
    out->fd = -1;
    DT_TRY(dt_digest_new(&out->digest, err));
    out->block = aligned_alloc(DISK_BYTES, BLOCK_BYTES);
    if (out->block == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to write '%s'", path);
    out->fd = io->open(io->self, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (out->fd < 0)
        DT_TRY(failed(out, "create", err));
    out->cached = better_cached(out->fd);
out:
    return st;
}

/* Write the collected block. The end of the file, if not a multiple of the disk's block size, goes
 * through the page cache, and so does everything after a refused direct write. */
static dt_status flush(dt_checkpoint_sink *sink, dt_error *err)
{
    const char *at = sink->block;

    set_direct(sink, !sink->cached && sink->held % DISK_BYTES == 0);
    while (sink->held > 0) {
        ssize_t put = sink->io->write(sink->io->self, sink->fd, at, sink->held);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EINVAL && sink->direct) {
            sink->cached = true;
            set_direct(sink, false);
            continue;
        }
        if (put < 0)
            return failed(sink, "write", err);
        at += put;
        sink->held -= (size_t)put;
        dt_progress_made();
    }
    return DT_OK;
}

dt_status dt_checkpoint_sink_write(dt_checkpoint_sink *sink, const void *bytes, size_t length,
                                   dt_error *err)
{
    dt_status st = DT_OK;
    const char *from = bytes;

    while (length > 0) {
        size_t room = BLOCK_BYTES - sink->held, part = length < room ? length : room;

        dt_digest_add(sink->digest, from, part);
        memcpy(sink->block + sink->held, from, part);
        sink->held += part;
        sink->bytes += (int64_t)part;
        from += part;
        length -= part;
        if (sink->held == BLOCK_BYTES)
            DT_TRY(flush(sink, err));
    }
out:
    return st;
}

dt_status dt_checkpoint_sink_finish(dt_checkpoint_sink *sink, char *hex, dt_error *err)
{
    dt_status st = DT_OK;
    int fd = sink->fd;

    DT_TRY(flush(sink, err));
    if (sink->io->sync(sink->io->self, fd) != 0)
        DT_TRY(failed(sink, "sync", err));
    sink->fd = -1;
    if (sink->io->close(sink->io->self, fd) != 0)
        DT_TRY(failed(sink, "close", err));
    if (hex != NULL)
        dt_digest_get(hex, sink->digest);
out:
    return st;
}

void dt_checkpoint_sink_release(dt_checkpoint_sink *sink)
{
    if (sink->io != NULL && sink->fd >= 0)
        sink->io->close(sink->io->self, sink->fd);
    dt_digest_free(sink->digest);
    free(sink->block);
    memset(sink, 0, sizeof(*sink));
}

dt_status dt_checkpoint_sink_put(const dt_checkpoint_io *io, const char *path, const void *bytes,
                                 size_t length, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint_sink sink = {0};

    DT_TRY(dt_checkpoint_sink_open(&sink, io, path, err));
    DT_TRY(dt_checkpoint_sink_write(&sink, bytes, length, err));
    DT_TRY(dt_checkpoint_sink_finish(&sink, NULL, err));
out:
    dt_checkpoint_sink_release(&sink);
    return st;
}
