/* rank_log: what a rank printed, in runs/ID/logs/rank-N.log.
 *
 * The file is written before the transaction that stores its length, and cut to the stored length
 * when it is opened: a line is in it once, whenever the supervisor died. All attempts share it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "runner/supervisor/supervisor_int.h"

#include "base/banned.h"

dt_status dt_rank_log_open(dt_session *session, dt_supervised_rank *rank, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    dt_strbuf path;

    dt_strbuf_init(&path);
    if (rank->log >= 0)
        goto out;
    dt_strbuf_add_fmt(&path, "%s/logs", session->folder);
    DT_TRY(dt_file_make_dirs(path.data, 0700, err));
    dt_strbuf_add_fmt(&path, "/rank-%lld.log", (long long)rank->row.rank);
    rank->log = open(path.data, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (rank->log < 0 || fstat(rank->log, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot open '%s': %s", path.data, strerror(errno));
    if (info.st_size < rank->row.log_bytes)
        rank->row.log_bytes = info.st_size; /* somebody shortened it */
    if (ftruncate(rank->log, rank->row.log_bytes) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot cut '%s': %s", path.data, strerror(errno));
out:
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_rank_log_add(dt_session *session, dt_supervised_rank *rank, int64_t time_ms,
                          const char *text, dt_error *err)
{
    char when[DT_CLOCK_ISO_SIZE];
    dt_status st = DT_OK;
    dt_strbuf line;

    dt_strbuf_init(&line);
    DT_TRY(dt_rank_log_open(session, rank, err));
    dt_strbuf_add_fmt(&line, "%s %s\n", dt_clock_iso(when, time_ms), text);
    for (size_t i = 0; i + 1 < line.length; i++)
        if (line.data[i] == '\n')
            line.data[i] = ' '; /* one line, whatever was inside */
    DT_TRY(dt_file_write_all(rank->log, line.data, line.length, err));
    rank->row.log_bytes += (int64_t)line.length;
    rank->changed = true;
out:
    if (st != DT_OK)
        dt_error_prefix(err, "the log of rank %lld", (long long)rank->row.rank);
    dt_strbuf_release(&line);
    return st;
}
