/* report: sends the events of a training rank (events.h).
 *
 * Every rank sends ready, memory, phase, pace and finished; only rank 0 sends metrics and checkpoints,
 * which are the same on all ranks.
 */
#ifndef DT_ENGINE_TRAIN_REPORT_H
#define DT_ENGINE_TRAIN_REPORT_H

#include "engine/checkpoint/writer.h"
#include "engine/train/session.h"
#include "engine/train/step.h"

/* Steps since the last metrics, including skipped steps. The time excludes evaluation and saving. */
typedef struct dt_interval {
    int64_t steps, items;
    double seconds;
    /* part of `seconds` spent neither in the strategy nor in collectives: loop, data, events */
    double host_overhead_seconds;
    int64_t sent_bytes; /* bytes sent by this rank until the end of the previous interval */
} dt_interval;

/* How fast this rank proceeds, reported every PACE_SECONDS (report.c) if there are several ranks. */
typedef struct dt_pace {
    /* time of the last report, and total time waited until then */
    double since_seconds, waited_seconds;
    int64_t step;
} dt_pace;

void dt_interval_add(dt_interval *interval, const dt_step *step, double seconds);

/* sends the events memory, then ready */
dt_status dt_report_start(dt_train_session *session, dt_error *err);
dt_status dt_report_phase(dt_train_session *session, const char *phase, dt_error *err);
/* Report a step; when its metrics are sent, starts the next interval. */
dt_status dt_report_step(dt_train_session *session, const dt_step *step, dt_interval *interval,
                         dt_error *err);
/* Call after each step. The first call initializes `pace`. */
dt_status dt_report_pace(dt_train_session *session, dt_pace *pace, dt_error *err);
dt_status dt_report_evaluation(dt_train_session *session, dt_error *err);
dt_status dt_report_checkpoint(dt_train_session *session, const dt_checkpoint_outcome *outcome,
                               dt_error *err);
dt_status dt_report_checkpoint_failed(dt_train_session *session, int64_t step, const char *message,
                                      dt_error *err);
dt_status dt_report_finished(dt_train_session *session, const char *reason, dt_error *err);
/* Takes no session, because the failure may have happened before one was open. */
dt_status dt_report_failed(dt_events *events, const dt_error *failure, dt_error *err);

#endif
