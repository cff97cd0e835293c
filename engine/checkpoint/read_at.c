#include "engine/checkpoint/read_at.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "engine/progress.h"

dt_status dt_checkpoint_read_at(void *out, size_t length, int fd, int64_t at_bytes,
                                const char *where, dt_error *err)
{
    char *put = out;

    while (length > 0) {
        ssize_t got = pread(fd, put, length, (off_t)at_bytes);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return DT_FAIL(err, DT_ERR_IO, "%s: cannot read: %s", where, strerror(errno));
        if (got == 0)
            return DT_FAIL(err, DT_ERR_CORRUPT, "%s: cut off at byte %lld", where,
                           (long long)at_bytes);
        dt_progress_made();
        put += got;
        at_bytes += got;
        length -= (size_t)got;
    }
    return DT_OK;
}
