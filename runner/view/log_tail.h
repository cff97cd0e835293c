/* log_tail: the lines that the ranks of a run have written, from the end and onwards.
 *
 * runs/ID/logs/rank-N.log holds "TIME TEXT" a line, of all attempts, and is valid up to the length
 * in the store (what is beyond was written by a supervisor that died before its transaction).
 *
 * Order  by time over all ranks. What follows live waits for two looks, in which lines of other
 * nodes with earlier times may still come; so far, clocks that differ do not matter.
 */
#ifndef DT_RUNNER_VIEW_LOG_TAIL_H
#define DT_RUNNER_VIEW_LOG_TAIL_H

#include "runner/view/step_log.h"

#define DT_LOG_TAIL_LOOKS 2 /* that a line waits for earlier ones */

typedef struct dt_log_line {
    int64_t rank;     /* -1: of the run, not of a rank (dt_log_lines_join) */
    const char *node; /* its name, of the newest attempt that has the rank */
    const char *text; /* with its time, without the line end */
    bool incident;    /* of the run: a sentence, which may be long */
} dt_log_line;

typedef struct dt_log_reader {
    int64_t rank, offset;             /* read up to here */
    int64_t limit;                    /* valid up to here */
    int64_t dropped;                  /* so many bytes at the beginning are no longer kept */
    int64_t known[DT_LOG_TAIL_LOOKS]; /* the limit of the looks before, the oldest first */
    const char *path, *node;
} dt_log_reader;

typedef struct dt_log_tail {
    dt_log_reader *readers;
    int64_t count, capacity, rank, attempt; /* rank -1: all; attempt: the newest that was seen */
    bool several_nodes;
    dt_arena *arena; /* of readers and names */
} dt_log_tail;

typedef enum dt_log_amount {
    DT_LOG_LAST, /* the last `most` lines (0: all) */
    DT_LOG_LIVE, /* what is new since the last call, and has waited */
    DT_LOG_REST, /* all that is new: nothing more will come */
} dt_log_amount;

/* One reader a rank of any attempt, or only of `rank` (-1: all). DT_ERR_USAGE where the run has no
 * such rank. The arena outlives the tail. */
dt_status dt_log_tail_init(dt_log_tail *out, dt_store *store, const dt_run *run, int64_t rank,
                           dt_arena *arena, dt_error *err);

/* Oldest first. Attempts, ranks and nodes that came since are seen. Texts live in the arena. */
dt_status dt_log_tail_read(dt_log_tail *tail, dt_log_line **lines, int64_t *count,
                           dt_log_amount amount, int64_t most, dt_store *store, const dt_run *run,
                           dt_arena *arena, dt_error *err);

/* The lines of ranks and of the run as one list by time; most > 0: the last so many. */
dt_status dt_log_lines_join(dt_log_line **lines, int64_t *count, const dt_step_lines *steps,
                            int64_t most, dt_arena *arena, dt_error *err);

#endif
