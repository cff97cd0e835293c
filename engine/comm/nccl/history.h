/* history: records the last collectives of a communicator, to diagnose a hang.
 *
 * Threads  protected by the owner's lock
 */
#ifndef DT_ENGINE_COMM_NCCL_HISTORY_H
#define DT_ENGINE_COMM_NCCL_HISTORY_H

#include "engine/device/nccl_link.h"

#define DT_NCCL_HISTORY 32

typedef struct dt_nccl_entry {
    int64_t number; /* number of the collective, from 1; 0: unused entry */
    dt_nccl_kind kind;
    int64_t bytes;
    double queued_at;       /* time by dt_clock_monotonic_seconds */
    dt_device_event *event; /* event recorded after the collective in the queue */
} dt_nccl_entry;

/* Collective i is at i % DT_NCCL_HISTORY; those up to `reached` are done. */
typedef struct dt_nccl_history {
    dt_nccl_entry entries[DT_NCCL_HISTORY];
    int64_t queued, reached;
} dt_nccl_history;

const char *dt_nccl_kind_name(dt_nccl_kind kind);

/* The oldest unfinished collective; NULL if there is none or it is no longer in the ring. */
const dt_nccl_entry *dt_nccl_history_oldest(const dt_nccl_history *history);

/* Log a line per collective: number, kind, bytes, age, whether it is done. */
void dt_nccl_history_log(const dt_nccl_history *history, const char *name);

#endif
