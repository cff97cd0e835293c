/* step_log: what a run has done as lines: every logged step, evaluations, checkpoints, and what went wrong.
 *
 *   step 740/2000  loss 1.7000  learning rate 0.0006  gradient norm 0.61  16.6k tokens/s
 *   step 750/2000  validation loss 1.7519
 *   step 750/2000  checkpoint saved, 3.21 MB
 *   attempt 2 continues from step 750: rank 1 on gpu-b was killed by signal 9 (SIGKILL)
 *
 * or each as a JSON object: time, kind ("step", "evaluation", "checkpoint", "restart", "checkpoint_failed"), attempt,
 * step, steps_total, and of a step "values", all metrics that were reported with its loss; what JSON has no number
 * for is null.
 *
 * Order      by time. Of steps that a later attempt did again those of the later one count, but for who has
 *            read the earlier ones already: a log that is followed says what happened.
 * Ownership  texts live in the arena of the call
 */
#ifndef DT_RUNNER_VIEW_STEP_LOG_H
#define DT_RUNNER_VIEW_STEP_LOG_H

#include "store/store.h"

typedef struct dt_step_line {
    int64_t time_ms, number; /* number: in the order in which they were read */
    const char *text;        /* without line end; names in it are as they were given */
    bool incident;           /* a sentence, which may be long, and not numbers */
} dt_step_line;

typedef struct dt_step_log {
    bool json;
    bool without_restarts;                               /* for who says those otherwise */
    int64_t attempt;                                     /* the newest that was read; 0: none yet */
    int64_t step, valid_step, checkpoint_step, event_id; /* read up to here */
} dt_step_log;

typedef struct dt_step_lines {
    dt_step_line *items;
    int64_t count, capacity;
} dt_step_lines;

/* The next call gives all that there is. */
void dt_step_log_init(dt_step_log *log, bool json);
/* Of the newest attempt alone. */
dt_status dt_step_log_begin_at(dt_step_log *log, dt_store *store, const dt_run *run,
                               dt_arena *arena, dt_error *err);
/* All that is new since the last call; most > 0: at first no more than the last so many. */
dt_status dt_step_log_read(dt_step_log *log, dt_step_lines *out, dt_store *store, const dt_run *run,
                           int64_t most, dt_arena *arena, dt_error *err);

#endif
