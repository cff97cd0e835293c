/* log_tail: reads a run as lines: the output of its ranks (log_tail.c) and its history (step_log.c).
 *
 * runs/ID/logs/rank-N.log has lines "TIME TEXT" of all attempts and is valid up to the length in the store. A
 * supervisor that died before its transaction may have written more.
 *
 * Order  by time over all ranks. Live lines are held back for two polls, because lines of other nodes with
 *        earlier times may still arrive. This also hides small differences between clocks.
 */
#ifndef DT_RUNNER_VIEW_FOLLOW_LOG_TAIL_H
#define DT_RUNNER_VIEW_FOLLOW_LOG_TAIL_H

#include "store/store.h"

/* step_log: reads the history of a run as lines: logged steps, evaluations, checkpoints and failures.
 *
 *   step 740/2000  loss 1.7000  learning rate 0.0006  gradient norm 0.61  16.6k tokens/s
 *   step 750/2000  validation loss 1.7519
 *   step 750/2000  checkpoint saved, 3.21 MB
 *   attempt 2 continues from step 750: rank 1 on gpu-b was killed by signal 9 (SIGKILL)
 *
 * or each as a JSON object: time, kind ("step", "evaluation", "checkpoint", "restart", "checkpoint_failed"), attempt,
 * step, steps_total, and for a step "values", all metrics that were reported with its loss. Values that are not
 * finite are null.
 *
 * Order      by time. A step that a later attempt repeated is read from that attempt only, unless the earlier one
 *            was read already: a followed log shows both.
 * Ownership  texts live in the arena of the call
 */

typedef struct dt_step_line {
    int64_t time_ms, number; /* number: order of reading */
    const char *text;        /* without line break; names are not escaped */
    bool incident;           /* a sentence, which may be long */
} dt_step_line;

typedef struct dt_step_log {
    bool json;
    bool without_restarts;                               /* the caller prints restarts itself */
    int64_t attempt;                                     /* the newest one read; 0: none yet */
    int64_t step, valid_step, checkpoint_step, event_id; /* read up to here */
} dt_step_log;

typedef struct dt_step_lines {
    dt_step_line *items;
    int64_t count, capacity;
} dt_step_lines;

/* The next dt_step_log_read reads everything. */
void dt_step_log_init(dt_step_log *log, bool json);
/* The next dt_step_log_read starts at the newest attempt. */
dt_status dt_step_log_begin_at(dt_step_log *log, dt_store *store, const dt_run *run,
                               dt_arena *arena, dt_error *err);
/* Reads all new lines since the last call; most > 0: skips older steps than the last `most`. */
dt_status dt_step_log_read(dt_step_log *log, dt_step_lines *out, dt_store *store, const dt_run *run,
                           int64_t most, dt_arena *arena, dt_error *err);

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
