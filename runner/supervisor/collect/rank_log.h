/* rank_log: what a rank printed, in runs/ID/logs/rank-N.log.
 *
 * The file is written before the transaction that stores its length is committed, and cut to the
 * stored length when it is opened, or when the transaction is taken back: a line is in it once,
 * whenever the supervisor died. All attempts share it. Of more than KEEP_BYTES the oldest is given
 * back to the file system as a hole: lengths stay what they are, and readers (log_tail) go past it.
 * A file system that knows no holes keeps all.
 *
 * Threads    one at a time: the store's writer, once there is one
 */
#ifndef DT_COLLECT_RANK_LOG_H
#define DT_COLLECT_RANK_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct dt_rank_log {
    int fd;                      /* -1: not open yet */
    int64_t bytes, stored_bytes; /* written; and in the store */
    bool unsynced;               /* lines came since it was last synced to the disk */
} dt_rank_log;

/* folder: runs/ID. */
dt_status dt_rank_log_open(dt_rank_log *log, const char *folder, int64_t rank, dt_error *err);
dt_status dt_rank_log_write(dt_rank_log *log, const char *folder, int64_t rank, const char *text,
                            size_t length, dt_error *err);
void dt_rank_log_settle(dt_rank_log *log, bool committed); /* the transaction that it is part of */
dt_status dt_rank_log_sync(dt_rank_log *log, dt_error *err); /* to the disk */
void dt_rank_log_close(dt_rank_log *log);

#endif
