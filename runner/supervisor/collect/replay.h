/* replay: reads the journals in a run's folder again, for an attempt that has ended.
 *
 * Every event becomes the rows that it became while a supervisor followed the attempt: points, events,
 * checkpoints, ranks. A row is written once, however often its journal is read. Logs, the parts of a task and
 * the state of the run are not changed. Damaged lines, and events that an agent has trimmed, are missing.
 *
 * Journals    FOLDER/attempt-N/node-K/journal.jsonl. Those of other machines are removed when the run ends
 * Derived     points that a supervisor computes from several ranks (slowest_rank, a task's speed) depend on the
 *             order of events between nodes: they are written, but not compared
 * Threads     any, but only one at a time per run
 */
#ifndef DT_COLLECT_REPLAY_H
#define DT_COLLECT_REPLAY_H

#include "base/memory.h"
#include "store/event.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_replay {
    dt_store *store;
    const char *run, *folder; /* runs/ID */
    int64_t attempt;
    const dt_node *nodes; /* acknowledged: how far the history once was; -1: unknown */
    int64_t node_count;
    /* also replace values that differ; the caller renews the pyramid (dt_store_pyramid_renew) */
    bool mend;
} dt_replay;

/* Writes the rows in the caller's transaction; the run and the attempt must be in the store.
 * *whole: the journals hold everything that the history once had. */
dt_status dt_replay_write(bool *whole, const dt_replay *request, dt_error *err);
/* Counts rows that the store lacks. only_node: -1 for all nodes. Returns an error if a journal
 * cannot be read to its end. */
dt_status dt_replay_compare(int64_t *missing, const dt_replay *request, int64_t only_node,
                            dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
