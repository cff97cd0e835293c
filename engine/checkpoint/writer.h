/* writer: saves checkpoints in the background.
 *
 * How        start copies the state (checkpoint_int.h), and training waits only for that; a low-priority
 *            thread then runs dt_checkpoint_save, agreeing with the other ranks'
 *            threads over its own communicator, and prunes. The ranks' main threads need not
 *            agree on anything: each gets the outcome from its own thread
 * One        save at a time: to start another, first collect the previous one, which waits for it
 * Threads    call all functions on the thread that trains
 * Errors     a save's failure is in its outcome
 */
#ifndef DT_ENGINE_CHECKPOINT_WRITER_H
#define DT_ENGINE_CHECKPOINT_WRITER_H

#include "engine/checkpoint/checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_checkpoint_writer dt_checkpoint_writer;

typedef struct dt_checkpoint_outcome {
    dt_status st;
    dt_error err;
    dt_checkpoint_saved saved;
    int64_t step;
    double valid_loss, score; /* score: dt_checkpoint_score */
    double seconds;           /* time from the start to the end of writing */
} dt_checkpoint_outcome;

/* Borrows `state`, `comm` and place->parent until close; nothing else may use `comm`. Errors:
 * DT_ERR_NOMEM. */
dt_status dt_checkpoint_writer_open(dt_checkpoint_writer **out, const dt_checkpoint_place *place,
                                    const dt_checkpoint_keep *keep, dt_strategy_state *state,
                                    dt_comm *comm, int threads, dt_error *err);
/* Waits for a save in progress. Accepts NULL. */
void dt_checkpoint_writer_close(dt_checkpoint_writer *writer);
/* memory of the snapshot; NULL: 0 */
int64_t dt_checkpoint_writer_bytes(const dt_checkpoint_writer *writer);

/* Collective; call after the previous save was collected. Takes the JSON of `info`. */
void dt_checkpoint_writer_start(dt_checkpoint_writer *writer, const dt_checkpoint_info *info);

/* Get the outcome of a save: true once for each save that has ended; with `wait`, waits for the one
 * in progress. */
bool dt_checkpoint_writer_collect(dt_checkpoint_writer *writer, bool wait,
                                  dt_checkpoint_outcome *out);

#ifdef __cplusplus
}
#endif
#endif
