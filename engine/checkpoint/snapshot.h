/* snapshot: a copy of what a rank writes into a checkpoint, so that training may continue.
 *
 * Memory     4 bytes per element of every value and moment that the rank exports; taken and touched
 *            once at the start. Copied by all threads at the speed of memory
 * Use        hands itself out as a strategy state, whose export_state gives the copies
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
    dt_strategy_state *live;   /* borrowed */
    dt_state_chunk *chunks;    /* of the copy */
    dt_snapshot_piece *pieces; /* DT_STATE_KINDS a chunk; without elements where there is none */
    int count, threads;
    int64_t elems;
    float *memory;
    dt_status st; /* of the last copy: a failure is reported when it is exported */
    dt_error err;
} dt_snapshot;

/* DT_ERR_NOMEM */
dt_status dt_snapshot_open(dt_snapshot *out, dt_strategy_state *live, int threads, dt_error *err);
void dt_snapshot_close(dt_snapshot *snapshot); /* accepts a zeroed one */
int64_t dt_snapshot_bytes(const dt_snapshot *snapshot);

/* Between steps, on the thread that trains. */
void dt_snapshot_take(dt_snapshot *snapshot);

/* Borrows the snapshot; collectives go through `comm`. */
dt_strategy_state dt_snapshot_state(dt_snapshot *snapshot, dt_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
