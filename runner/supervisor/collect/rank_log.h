/* rank_log: writes the output of a rank to runs/ID/logs/rank-N.log.
 *
 * The file is written before the transaction that stores its length is committed. It is truncated to the
 * stored length when it is opened, or when the transaction is rolled back: so every line is in it once,
 * whenever the supervisor dies. All attempts share the file. Beyond KEEP_BYTES the oldest part is freed as a
 * hole: lengths do not change, and readers (log_tail) skip it. A file system without holes keeps everything.
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
    int fd;
    int64_t bytes, stored_bytes; /* written, and length in the store */
    bool unsynced;               /* lines were added since the last sync */
} dt_rank_log;

/* folder: runs/ID. */
dt_status dt_rank_log_open(dt_rank_log *log, const char *folder, int64_t rank, dt_error *err);
dt_status dt_rank_log_write(dt_rank_log *log, const char *folder, int64_t rank, const char *text,
                            size_t length, dt_error *err);
/* after its transaction was committed or rolled back */
void dt_rank_log_settle(dt_rank_log *log, bool committed);
dt_status dt_rank_log_sync(dt_rank_log *log, dt_error *err); /* to the disk */
void dt_rank_log_close(dt_rank_log *log);

#endif
