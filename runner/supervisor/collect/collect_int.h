/* collect_int: what the files of the collector share: collector.c (open, rows, event numbers, an event into
 * rows and memory), batch.c (own events, commits, acknowledgements), task_progress.c (progress of a task,
 * part by part). */
#ifndef DT_RUNNER_SUPERVISOR_COLLECT_COLLECT_INT_H
#define DT_RUNNER_SUPERVISOR_COLLECT_COLLECT_INT_H

#include "runner/supervisor/collect/collector.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/policy/watchdog.h"

typedef struct dt_ack dt_ack;
typedef struct dt_task_progress dt_task_progress;

struct dt_collector {
    dt_collector_setup setup;
    dt_collector_calls calls;
    void *context;
    dt_run_rows *rows;
    dt_arena arena;
    dt_collected_rank *ranks;
    dt_collected_node *nodes;
    dt_straggler straggler;

    dt_progress progress;
    bool progressed;     /* newer than the stored progress */
    int64_t steps_total; /* as the engine reported in this attempt; 0: not yet */
    bool gaps;
    dt_task_progress *task; /* NULL: the task is training */

    dt_ack *acks, **acks_last; /* sent once the events are on disk (batch.c) */
    bool paused;
};

/* --- batch.c */
/* Adds the row of an event of the node; -1: of the supervisor. */
dt_status dt_collector_add_event(dt_collector *collector, int64_t node, const dt_message *message,
                                 dt_error *err);
/* Adds a point of a curve. */
dt_status dt_collector_metric(dt_collector *collector, const dt_message *message, int64_t step,
                              const char *name, double value, dt_error *err);

/* --- collector.c */
/* Handles the next event of the node. */
dt_status dt_collector_ingest(dt_collector *collector, int64_t node, const dt_message *message,
                              dt_error *err);

/* --- task_progress.c */
/* Allocates in the collector's arena; knows the parts that are in the folder. */
dt_status dt_task_progress_open(dt_task_progress **out, dt_collector *collector, dt_error *err);
int64_t dt_task_progress_lines(const dt_task_progress *progress);
/* Stores a piece of a part in the folder, and the metrics of a finished part in the history. */
dt_status dt_collector_part(dt_collector *collector, const dt_message *message, dt_error *err);

#endif
