/* history: what a run's supervisor writes into the store.
 *
 * Each change is added to the batch that is open, which commit ends (store_writer.h). Before there
 * is a writer (while the session is loaded) it is done at once, in a transaction that begin opens.
 *
 * Ownership  texts are copied where they must outlive the call
 * Threads    the loop's; what a rank's log has is the writer's once there is one
 */
#ifndef DT_COLLECT_HISTORY_H
#define DT_COLLECT_HISTORY_H

#include "runner/supervisor/collect/rank_log.h"
#include "runner/supervisor/collect/store_writer.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "store/store.h"

typedef struct dt_history dt_history;

typedef struct dt_history_setup {
    dt_store *store;          /* the loop's; borrowed, as all here */
    const char *run, *folder; /* runs/ID */
    int64_t attempt;
    /* Of journals that are read again (replay.h): rows of the journal go into the caller's transaction, or are only
     * looked for; logs, parts and the state of the run stay as they are. */
    enum { DT_HISTORY_FOLLOW, DT_HISTORY_REPLAY, DT_HISTORY_COMPARE } mode;
    bool mend;        /* of DT_HISTORY_REPLAY: a point's value is replaced (dt_store_metric_mend) */
    int64_t *missing; /* of DT_HISTORY_COMPARE: counts the rows that the store lacks */
} dt_history_setup;

typedef struct dt_progress {
    int64_t step;
    double loss, valid_loss, tokens_per_second; /* NaN: not known */
} dt_progress;

dt_history *dt_history_open(const dt_history_setup *setup);
void dt_history_close(dt_history *history); /* accepts NULL */

dt_status dt_history_begin_writer(dt_history *history, uv_loop_t *loop,
                                  const dt_store_writer_calls *calls, void *context, dt_error *err);
void dt_history_end_writer(dt_history *history);
dt_store_writer *dt_history_writer(const dt_history *history); /* NULL: none */

dt_status dt_history_begin(dt_history *history, dt_error *err); /* nothing where one is open */
bool dt_history_is_open(const dt_history *history); /* there may be something to commit */
/* *batch: its number, 0 without a writer. */
dt_status dt_history_commit(int64_t *batch, dt_history *history, dt_error *err);
void dt_history_rollback(dt_history *history);

/* --- changes */
dt_status dt_history_metric(dt_history *history, int64_t step, const char *name, double value,
                            int64_t time_ms, dt_error *err);
dt_status dt_history_event(dt_history *history, const dt_store_event *row, dt_error *err);
dt_status dt_history_checkpoint(dt_history *history, const dt_store_checkpoint *row, dt_error *err);
dt_status dt_history_node(dt_history *history, int64_t attempt, const dt_node *row, dt_error *err);
/* Its log_bytes are those that the log then has. */
dt_status dt_history_rank(dt_history *history, const dt_rank *row, const dt_rank_log *log,
                          dt_error *err);
dt_status dt_history_progress(dt_history *history, const dt_progress *progress, dt_error *err);
dt_status dt_history_steps_total(dt_history *history, int64_t steps, dt_error *err);
dt_status dt_history_state(dt_history *history, dt_run_state state, dt_error *err);
/* The attempt, in its folder. What is wrong with that is no error of the history. The strings of
 * `attempt` must live as long as the history. */
dt_status dt_history_record_attempt(dt_history *history, const dt_attempt_record *attempt,
                                    dt_error *err);
/* A piece of a task's part, in its folder (task_folder.h). */
typedef struct dt_history_piece {
    int64_t part, offset;
    bool last, hex; /* hex: the bytes are told in hexadecimal */
    const char *text;
} dt_history_piece;
dt_status dt_history_part(dt_history *history, const dt_history_piece *piece, dt_error *err);
/* A line at the end of the rank's log, with its newline. */
dt_status dt_history_log(dt_history *history, dt_rank_log *log, int64_t rank, const char *text,
                         size_t length, dt_error *err);

#endif
