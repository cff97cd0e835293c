/* report: what a rank tells of its training, as the events of events.h.
 *
 * Every rank says ready, memory, phase, pace and finished; rank 0 alone says metrics and
 * checkpoints, which are the same on all.
 */
#ifndef DT_ENGINE_TRAIN_REPORT_H
#define DT_ENGINE_TRAIN_REPORT_H

#include "engine/checkpoint/writer.h"
#include "engine/train/session.h"
#include "engine/train/step.h"

/* Steps since the last metrics, skipped ones too: their time leaves out evaluation and saving. */
typedef struct dt_interval {
    int64_t steps, items;
    double seconds;
    double
        host_overhead_seconds; /* of them, in neither strategy nor collectives: loop, data, events */
    int64_t sent_bytes;        /* by this rank, up to the end of the interval before */
} dt_interval;

/* How a rank keeps up: reported every PACE_SECONDS (report.c), where there are several. */
typedef struct dt_pace {
    double since_seconds, waited_seconds; /* when the last was reported, and waited until then */
    int64_t step;
} dt_pace;

void dt_interval_add(dt_interval *interval, const dt_step *step, double seconds);

dt_status dt_report_start(dt_train_session *session, dt_error *err); /* memory, then ready */
dt_status dt_report_phase(dt_train_session *session, const char *phase, dt_error *err);
/* Starts the next interval. */
dt_status dt_report_step(dt_train_session *session, const dt_step *step, dt_interval *interval,
                         dt_error *err);
/* After each step; begins by itself. */
dt_status dt_report_pace(dt_train_session *session, dt_pace *pace, dt_error *err);
dt_status dt_report_evaluation(dt_train_session *session, dt_error *err);
dt_status dt_report_checkpoint(dt_train_session *session, const dt_checkpoint_outcome *outcome,
                               dt_error *err);
dt_status dt_report_checkpoint_failed(dt_train_session *session, int64_t step, const char *message,
                                      dt_error *err);
dt_status dt_report_finished(dt_train_session *session, const char *reason, dt_error *err);
/* Without a session: it may not have come that far. */
dt_status dt_report_failed(dt_events *events, const dt_error *failure, dt_error *err);

#endif
