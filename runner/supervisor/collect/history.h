/* history: writes a run's rows into the store.
 *
 * Each change is added to the open batch, which commit ends (store_writer.h). Before there is a writer (while
 * the session is loaded) a change is written at once, in a transaction that begin opens.
 *
 * Ownership  texts are copied if they must outlive the call
 * Threads    call from the loop's thread; rank logs belong to the writer's thread once it runs
 */
#ifndef DT_COLLECT_HISTORY_H
#define DT_COLLECT_HISTORY_H

#include "runner/supervisor/collect/rank_log.h"
#include "runner/supervisor/collect/store_writer.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "store/store.h"

typedef struct dt_history dt_history;

typedef struct dt_history_setup {
    dt_store *store;          /* used on the loop; borrowed, like all fields */
    const char *run, *folder; /* runs/ID */
    int64_t attempt;
    /* Mode. REPLAY and COMPARE read journals again (replay.h): rows are written in the caller's
     * transaction, or only looked for; logs, parts and the state of the run are not changed. */
    enum { DT_HISTORY_FOLLOW, DT_HISTORY_REPLAY, DT_HISTORY_COMPARE } mode;
    /* for DT_HISTORY_REPLAY: replace the value of a point (dt_store_metric_mend) */
    bool mend;
    int64_t *missing; /* for DT_HISTORY_COMPARE: counts rows missing in the store */
} dt_history_setup;

typedef struct dt_progress {
    int64_t step;
    double loss, valid_loss, tokens_per_second; /* NaN: unknown */
} dt_progress;

dt_history *dt_history_open(const dt_history_setup *setup);
void dt_history_close(dt_history *history); /* accepts NULL */

dt_status dt_history_begin_writer(dt_history *history, uv_loop_t *loop,
                                  const dt_store_writer_calls *calls, void *context, dt_error *err);
void dt_history_end_writer(dt_history *history);
dt_store_writer *dt_history_writer(const dt_history *history); /* NULL: none */

dt_status dt_history_begin(dt_history *history, dt_error *err); /* does nothing if one is open */
bool dt_history_is_open(const dt_history *history);
/* *batch: number of the batch, 0 without a writer. */
dt_status dt_history_commit(int64_t *batch, dt_history *history, dt_error *err);
void dt_history_rollback(dt_history *history);

/* --- changes */
dt_status dt_history_metric(dt_history *history, int64_t step, const char *name, double value,
                            int64_t time_ms, dt_error *err);
dt_status dt_history_event(dt_history *history, const dt_store_event *row, dt_error *err);
dt_status dt_history_checkpoint(dt_history *history, const dt_store_checkpoint *row, dt_error *err);
dt_status dt_history_node(dt_history *history, int64_t attempt, const dt_node *row, dt_error *err);
/* Writes the rank's row with the current length of its log. */
dt_status dt_history_rank(dt_history *history, const dt_rank *row, const dt_rank_log *log,
                          dt_error *err);
dt_status dt_history_progress(dt_history *history, const dt_progress *progress, dt_error *err);
dt_status dt_history_steps_total(dt_history *history, int64_t steps, dt_error *err);
dt_status dt_history_state(dt_history *history, dt_run_state state, dt_error *err);
/* Writes the record of the attempt to its folder; a failure is only logged. The strings of
 * `attempt` must outlive the history. */
dt_status dt_history_record_attempt(dt_history *history, const dt_attempt_record *attempt,
                                    dt_error *err);
/* A piece of a part of a task, for its folder (task_folder.h). */
typedef struct dt_history_piece {
    int64_t part, offset;
    bool last, hex; /* hex: the bytes are in hexadecimal */
    const char *text;
} dt_history_piece;
dt_status dt_history_part(dt_history *history, const dt_history_piece *piece, dt_error *err);
/* Appends a line to the rank's log, with its newline. */
dt_status dt_history_log(dt_history *history, dt_rank_log *log, int64_t rank, const char *text,
                         size_t length, dt_error *err);

#endif
