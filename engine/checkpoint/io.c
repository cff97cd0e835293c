#include "engine/checkpoint/io_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
