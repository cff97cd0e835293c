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
#ifndef DT_RUNNER_VIEW_STEP_LOG_H
#define DT_RUNNER_VIEW_STEP_LOG_H

#include "store/store.h"

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

#endif
