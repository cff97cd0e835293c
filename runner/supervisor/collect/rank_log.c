#include "runner/supervisor/collect/rank_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define KEEP_BYTES ((int64_t)64 << 20)
#define STEP_BYTES ((int64_t)16 << 20) /* freed in one go */

static void drop_oldest(const dt_rank_log *log)
{
    int64_t before = (log->stored_bytes - KEEP_BYTES) / STEP_BYTES;
    int64_t now = (log->bytes - KEEP_BYTES) / STEP_BYTES;

    if (log->fd >= 0 && log->bytes > KEEP_BYTES && now > 0 && now != before)
        (void)fallocate(log->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, now * STEP_BYTES);
}

dt_status dt_rank_log_open(dt_rank_log *log, const char *folder, int64_t rank, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    dt_strbuf path;

    dt_strbuf_init(&path);
    if (log->fd >= 0)
        goto out;
    dt_strbuf_add_fmt(&path, "%s/logs", folder);
    DT_TRY(dt_file_make_dirs(path.data, 0700, err));
    dt_strbuf_add_fmt(&path, "/rank-%lld.log", (long long)rank);
    log->fd = open(path.data, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log->fd < 0 || fstat(log->fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot open '%s': %s", path.data, strerror(errno));
    if (info.st_size < log->bytes)
        log->bytes = log->stored_bytes = info.st_size; /* the file was shortened */
    if (ftruncate(log->fd, log->bytes) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot truncate '%s': %s", path.data, strerror(errno));
out:
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_rank_log_write(dt_rank_log *log, const char *folder, int64_t rank, const char *text,
                            size_t length, dt_error *err)
{
    dt_status st;

    DT_TRY(dt_rank_log_open(log, folder, rank, err));
    DT_TRY(dt_file_write_all(log->fd, text, length, err));
    log->bytes += (int64_t)length;
    log->unsynced = true;
out:
    if (st != DT_OK)
        dt_error_prefix(err, "the log of rank %lld", (long long)rank);
    return st;
}

void dt_rank_log_settle(dt_rank_log *log, bool committed)
{
    if (committed) {
        drop_oldest(log);
        log->stored_bytes = log->bytes;
        return;
    }
    log->bytes = log->stored_bytes;
    dt_rank_log_close(log); /* truncated when it is opened again */
}

dt_status dt_rank_log_sync(dt_rank_log *log, dt_error *err)
{
    if (log->fd < 0 || !log->unsynced)
        return DT_OK;
    if (fdatasync(log->fd) != 0 && errno != EINVAL)
        return DT_FAIL(err, DT_ERR_IO, "cannot sync the log of a rank: %s", strerror(errno));
    log->unsynced = false;
    return DT_OK;
}

void dt_rank_log_close(dt_rank_log *log)
{
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
}
