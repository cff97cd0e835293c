/* log_tail: the lines that the ranks of a run have written, from the end and onwards.
 *
 * runs/ID/logs/rank-N.log holds "TIME TEXT" a line and is valid up to the length in the store
 * (what is beyond was written by a supervisor that died before its transaction). Lines of several
 * ranks are put in the order of their times.
 */
#ifndef DT_RUNNER_LOG_TAIL_H
#define DT_RUNNER_LOG_TAIL_H

#include "store/store.h"

typedef struct dt_log_line {
    int64_t rank;
    const char *text; /* with its time, without the line end */
} dt_log_line;

typedef struct dt_log_reader {
    int64_t rank, offset; /* read up to here */
    const char *path;
} dt_log_reader;

typedef struct dt_log_tail {
    dt_log_reader *readers;
    int64_t count;
} dt_log_tail;

/* One reader a rank of the newest attempt, or only of `rank` (-1: all). DT_ERR_USAGE where the
 * run has no such rank. */
dt_status dt_log_tail_init(dt_log_tail *out, dt_store *store, const dt_run *run, int64_t rank,
                           dt_arena *arena, dt_error *err);

/* What is new since the last call, oldest first; of the first call the last `most` lines (0: all).
 * Texts live in the arena. */
dt_status dt_log_tail_read(dt_log_tail *tail, dt_log_line **lines, int64_t *count, int64_t most,
                           dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err);

#endif
