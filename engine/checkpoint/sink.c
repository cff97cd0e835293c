#define _GNU_SOURCE
#include "engine/checkpoint/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/banned.h"

#define SLICE_BYTES ((size_t)1 << 20) /* digested, then written while still in the cache */

static dt_status failed(const dt_checkpoint_sink *sink, const char *what, dt_error *err)
{
    const char *advice =
        errno == ENOSPC || errno == EDQUOT ? "; free some space, or lower checkpoint.keep" : "";

    return DT_FAIL(err, DT_ERR_IO, "cannot %s '%s': %s%s", what, sink->path, strerror(errno),
                   advice);
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
    out->fd = io->open(io->self, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (out->fd < 0)
        DT_TRY(failed(out, "create", err));
out:
    return st;
}

static dt_status write_slice(dt_checkpoint_sink *sink, const char *bytes, size_t length,
                             dt_error *err)
{
    while (length > 0) {
        ssize_t put = sink->io->write(sink->io->self, sink->fd, bytes, length);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return failed(sink, "write", err);
        bytes += put;
        length -= (size_t)put;
    }
    return DT_OK;
}

dt_status dt_checkpoint_sink_write(dt_checkpoint_sink *sink, const void *bytes, size_t length,
                                   dt_error *err)
{
    dt_status st = DT_OK;
    const char *at = bytes;

    while (length > 0) {
        size_t slice = length < SLICE_BYTES ? length : SLICE_BYTES;

        dt_digest_add(sink->digest, at, slice);
        DT_TRY(write_slice(sink, at, slice, err));
        sink->bytes += (int64_t)slice;
        at += slice;
        length -= slice;
    }
out:
    return st;
}

dt_status dt_checkpoint_sink_finish(dt_checkpoint_sink *sink, char *hex, dt_error *err)
{
    dt_status st = DT_OK;
    int fd = sink->fd;

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
