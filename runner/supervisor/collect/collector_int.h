/* collector_int: what the files of the collector share.
 *
 *   collector.c  opened, its rows               batch.c    own events, commit, what becomes of it
 *   ingest.c     an event → rows and memory     sequence.c numbers, events that were lost
 *   task_progress.c   how far a task is, part by part
 *   history.c    what is written                store_writer.c, rank_log.c   where to
 */
#ifndef DT_COLLECT_COLLECTOR_INT_H
#define DT_COLLECT_COLLECTOR_INT_H

#include "runner/supervisor/collect/collector.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/policy/straggler.h"

typedef struct dt_ack dt_ack;
typedef struct dt_task_progress dt_task_progress;

struct dt_collector {
    dt_collector_setup setup;
    dt_collector_calls calls;
    void *context;
    dt_history *history;
    dt_arena arena;
    dt_collected_rank *ranks;
    dt_collected_node *nodes;
    dt_straggler straggler;

    dt_progress progress;
    bool progressed;     /* it is newer than the store's */
    int64_t steps_total; /* as the engine said in this attempt; 0: not yet */
    bool gaps;
    dt_task_progress *task; /* NULL: to train */

    dt_ack *acks, **acks_last; /* to be sent once they are on the disk (batch.c) */
    bool paused;
};

/* --- batch.c */
/* The event's row, of the node; -1: the supervisor's own. */
dt_status dt_collector_add_event(dt_collector *collector, int64_t node, const dt_message *message,
                                 dt_error *err);

/* --- ingest.c */
/* The event that is wanted next. */
dt_status dt_collector_ingest(dt_collector *collector, int64_t node, const dt_message *message,
                              dt_error *err);

/* --- task_progress.c */
/* In the collector's arena: the parts that its folder has. */
dt_status dt_task_progress_open(dt_task_progress **out, dt_collector *collector, dt_error *err);
int64_t dt_task_progress_lines(const dt_task_progress *progress);
/* A piece of a part goes into the folder; of a whole one the metrics go into the history. */
dt_status dt_collector_part(dt_collector *collector, const dt_message *message, dt_error *err);

#endif
