/* snapshot: copies what a rank writes into a checkpoint, so that training can continue meanwhile.
 *
 * Memory     4 bytes per element of every value and moment that the rank exports; allocated and touched
 *            once at the start. Copied by all threads at the speed of memory
 * Use        provides a strategy state whose export_state returns the copies
 */
#ifndef DT_ENGINE_CHECKPOINT_SNAPSHOT_H
#define DT_ENGINE_CHECKPOINT_SNAPSHOT_H

#include "engine/strategy/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_snapshot_piece {
    float *to;
    const float *from;
    int64_t elems;
} dt_snapshot_piece;

typedef struct dt_snapshot {
    dt_strategy_state *live; /* the strategy state that is copied, borrowed */
    dt_state_chunk *chunks;  /* chunks that point into the copy */
    /* DT_STATE_KINDS per chunk; without elements if the chunk lacks that kind */
    dt_snapshot_piece *pieces;
    int count, threads;
    int64_t elems;
    float *memory;
    dt_status st; /* of the last copy: a failure is reported on export */
    dt_error err;
} dt_snapshot;

/* Allocate a snapshot of the state's exported chunks. Errors: DT_ERR_NOMEM. */
dt_status dt_snapshot_open(dt_snapshot *out, dt_strategy_state *live, int threads, dt_error *err);
void dt_snapshot_close(dt_snapshot *snapshot); /* accepts a zeroed snapshot */
int64_t dt_snapshot_bytes(const dt_snapshot *snapshot);

/* Copy the state. Call between steps, on the thread that trains. */
void dt_snapshot_take(dt_snapshot *snapshot);

/* A strategy state that borrows the snapshot and uses `comm` for collectives. */
dt_strategy_state dt_snapshot_state(dt_snapshot *snapshot, dt_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
