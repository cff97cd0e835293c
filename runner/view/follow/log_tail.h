/* log_tail: reads the output of the ranks of a run, the last lines first and then new ones.
 *
 * runs/ID/logs/rank-N.log has lines "TIME TEXT" of all attempts and is valid up to the length in the store. A
 * supervisor that died before its transaction may have written more.
 *
 * Order  by time over all ranks. Live lines are held back for two polls, because lines of other nodes with
 *        earlier times may still arrive. This also hides small differences between clocks.
 */
#ifndef DT_RUNNER_VIEW_LOG_TAIL_H
#define DT_RUNNER_VIEW_LOG_TAIL_H

#include "runner/view/follow/step_log.h"

#define DT_LOG_TAIL_LOOKS 2 /* polls for which a live line is held back */

typedef struct dt_log_line {
    int64_t rank;     /* -1: a line of the run (dt_log_lines_join) */
    const char *node; /* name of the node in the newest attempt that has the rank */
    const char *text; /* with its time, without the line end */
    bool incident;    /* a sentence on the run, which may be long */
} dt_log_line;

typedef struct dt_log_reader {
    int64_t rank, offset;             /* read up to here */
    int64_t limit;                    /* valid up to here */
    int64_t dropped;                  /* bytes at the start that were discarded */
    int64_t known[DT_LOG_TAIL_LOOKS]; /* limits of previous polls, oldest first */
    const char *path, *node;
} dt_log_reader;

typedef struct dt_log_tail {
    dt_log_reader *readers;
    int64_t count, capacity, rank, attempt; /* rank -1: all; attempt: the newest one read */
    bool several_nodes;
    dt_arena *arena; /* of readers and names */
} dt_log_tail;

typedef enum dt_log_amount {
    DT_LOG_LAST, /* the last `most` lines (0: all) */
    DT_LOG_LIVE, /* new lines since the last call that were held back long enough */
    DT_LOG_REST, /* all new lines: the run has ended */
} dt_log_amount;

/* Opens one reader for each rank of any attempt, or only for `rank` (-1: all). DT_ERR_USAGE if the run has no
 * such rank. The arena outlives the tail. */
dt_status dt_log_tail_init(dt_log_tail *out, dt_store *store, const dt_run *run, int64_t rank,
                           dt_arena *arena, dt_error *err);

/* Reads lines, oldest first, also of attempts, ranks and nodes that are new. Texts live in the arena. */
dt_status dt_log_tail_read(dt_log_tail *tail, dt_log_line **lines, int64_t *count,
                           dt_log_amount amount, int64_t most, dt_store *store, const dt_run *run,
                           dt_arena *arena, dt_error *err);

/* Merges the lines of the ranks and of the run by time; most > 0: keeps only the last `most`. */
void dt_log_lines_join(dt_log_line **lines, int64_t *count, const dt_step_lines *steps,
                       int64_t most, dt_arena *arena);

#endif
