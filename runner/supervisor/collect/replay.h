/* replay: reads the journals that are in a run's folder again, for an attempt that has ended.
 *
 * Every kind of event becomes the rows that it became when a supervisor followed the attempt: points, events,
 * checkpoints, ranks. A row is written once, however often its journal is read. Logs, the parts of a task and the
 * state of the run are not touched. Damaged lines, and what an agent has given back to the disk, are left out.
 *
 * Journals    FOLDER/attempt-N/node-K/journal.jsonl. Those of other machines are removed there when the run ends
 * Derived     the points that a supervisor computes from several ranks (slowest_rank, a task's speed) depend on the
 *             order of events between nodes: they are written, and not compared
 * Threads     any; one at a time for a run
 */
#ifndef DT_COLLECT_REPLAY_H
#define DT_COLLECT_REPLAY_H

#include "base/arena.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_replay {
    dt_store *store;
    const char *run, *folder; /* runs/ID */
    int64_t attempt;
    const dt_node *nodes; /* acknowledged: how far the history once was; -1: not known */
    int64_t node_count;
    bool
        mend; /* also replace values that differ; the caller renews the pyramid (dt_store_pyramid_renew) */
} dt_replay;

/* Writes the rows; in the caller's transaction, with the run and the attempt in the store. *whole: the journals have
 * all that the history once had. */
dt_status dt_replay_write(bool *whole, const dt_replay *what, dt_error *err);
/* Counts rows of a journal that the store lacks. only_node: -1 for all nodes. A journal that cannot be read to its
 * end is an error. */
dt_status dt_replay_compare(int64_t *missing, const dt_replay *what, int64_t only_node,
                            dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
