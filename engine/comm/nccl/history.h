/* history: the last collectives of a communicator, for whoever asks why it hangs.
 *
 * Threads  the owner's lock
 */
#ifndef DT_ENGINE_COMM_NCCL_HISTORY_H
#define DT_ENGINE_COMM_NCCL_HISTORY_H

#include "engine/device/nccl_link.h"

#define DT_NCCL_HISTORY 32

typedef struct dt_nccl_entry {
    int64_t number; /* from 1; 0: none yet */
    dt_nccl_kind kind;
    int64_t bytes;
    double queued_at;       /* dt_clock_monotonic_seconds */
    dt_device_event *event; /* behind it in the queue */
} dt_nccl_entry;

/* Collective i is at i % DT_NCCL_HISTORY; those up to `reached` are done. */
typedef struct dt_nccl_history {
    dt_nccl_entry entries[DT_NCCL_HISTORY];
    int64_t queued, reached;
} dt_nccl_history;

const char *dt_nccl_kind_name(dt_nccl_kind kind);

/* The oldest that is not done; NULL where all are, or where it has left the ring. */
const dt_nccl_entry *dt_nccl_history_oldest(const dt_nccl_history *history);

/* To the log, a line each: number, what, bytes, age, whether it was done. */
void dt_nccl_history_log(const dt_nccl_history *history, const char *name);

#endif
