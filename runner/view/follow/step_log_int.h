/* step_log_int: declares the state of a dt_step_log_read and the helpers that the files of step_log share. */
#ifndef DT_RUNNER_VIEW_STEP_LOG_INT_H
#define DT_RUNNER_VIEW_STEP_LOG_INT_H

#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "runner/view/follow/step_log.h"
#include "runner/view/runs/evaluations.h"

typedef struct dt_step_reading {
    dt_step_log *log;
    dt_store *store;
    const dt_run *run;
    dt_step_lines *out;
    dt_arena *arena;
} dt_step_reading;

/* Whether the metric belongs to an evaluation, which has its own line. */
static inline bool dt_step_log_is_evaluation(const char *metric)
{
    return strcmp(metric, DT_VALID_LOSS) == 0 || strcmp(metric, DT_VALID_BLEU) == 0;
}

/* --- step_log_lines.c */
/* Adds a line. */
void dt_step_log_add_line(dt_step_reading *r, int64_t time_ms, const char *text);
/* Adds a line and releases `text`. */
void dt_step_log_add_text(dt_step_reading *r, int64_t time_ms, dt_strbuf *text);
/* Returns an object with the common keys. New reference. */
json_t *dt_step_log_object(const dt_step_reading *r, const char *kind, int64_t time_ms,
                           int64_t attempt, int64_t step);
/* Adds `object` as a line and releases it. */
dt_status dt_step_log_add_json(dt_step_reading *r, int64_t time_ms, json_t *object, dt_error *err);
/* Adds "step 740/2000". */
void dt_step_log_add_place(dt_strbuf *text, const dt_step_reading *r, int64_t step);
void dt_step_log_add_loss(dt_strbuf *text, double value);

/* --- step_log_steps.c: every logged step after r->log->step */
dt_status dt_step_log_read_steps(dt_step_reading *r, const dt_store_curves *curves, dt_error *err);

/* --- step_log_rare.c: evaluations, checkpoints and failures */
dt_status dt_step_log_read_evaluations(dt_step_reading *r, dt_error *err);
dt_status dt_step_log_read_checkpoints(dt_step_reading *r, dt_error *err);
dt_status dt_step_log_read_incidents(dt_step_reading *r, int64_t since_ms, dt_error *err);

#endif
