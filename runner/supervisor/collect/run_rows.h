/* run_rows: writes a run's rows into the store; every kind of row is one dt_row, and passes one function.
 *
 * Each row is added to the open batch, which commit ends (store_writer.h). Before there is a writer (while the
 * session is loaded) a row is written at once, in a transaction that begin opens.
 *
 * Adding a kind of row: a member of the union, and a case in keep_texts and in write_row (run_rows.c).
 *
 * Ownership  texts are copied if they must outlive the call
 * Threads    call from the loop's thread; rank logs belong to the writer's thread once it runs
 */
#ifndef DT_COLLECT_RUN_ROWS_H
#define DT_COLLECT_RUN_ROWS_H

#include "runner/supervisor/collect/rank_log.h"
#include "runner/supervisor/collect/store_writer.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "store/store.h"

typedef struct dt_run_rows dt_run_rows;

typedef struct dt_run_rows_setup {
    dt_store *store;          /* used on the loop; borrowed, like all fields */
    const char *run, *folder; /* runs/ID */
    int64_t attempt;
    /* Mode. REPLAY and COMPARE read journals again (replay.h): rows are written in the caller's
     * transaction, or only looked for; logs, parts and the state of the run are not changed. */
    enum { DT_RUN_ROWS_FOLLOW, DT_RUN_ROWS_REPLAY, DT_RUN_ROWS_COMPARE } mode;
    /* for DT_RUN_ROWS_REPLAY: replace the value of a point (dt_store_metric_mend) */
    bool mend;
    int64_t *missing; /* for DT_RUN_ROWS_COMPARE: counts rows missing in the store */
} dt_run_rows_setup;

typedef struct dt_progress {
    int64_t step;
    double loss, valid_loss, tokens_per_second; /* NaN: unknown */
} dt_progress;

typedef enum dt_row_kind {
    /* in the journals: written again, or looked for, when these are replayed */
    DT_ROW_METRIC,
    DT_ROW_EVENT,
    DT_ROW_CHECKPOINT,
    /* only while the run is followed */
    DT_ROW_NODE,
    DT_ROW_RANK,
    DT_ROW_PROGRESS,
    DT_ROW_STEPS_TOTAL,
    DT_ROW_STATE,
    DT_ROW_RECORD, /* of the attempt, to its folder; a failure is only logged */
    DT_ROW_PART,   /* of a task, to its folder */
    DT_ROW_LINE,   /* of a rank's log */
} dt_row_kind;

typedef struct dt_row {
    dt_row_kind kind;
    int64_t attempt; /* of NODE and RANK; the others have their own */
    union {
        dt_metric metric;
        dt_store_event event;
        dt_store_checkpoint checkpoint;
        dt_node node;
        struct {
            dt_rank row;            /* log_bytes is set when it is written, from the log */
            const dt_rank_log *log; /* outlives the rows */
        } rank;
        struct {
            dt_progress now;
            int64_t time_ms;
        } progress;
        int64_t steps_total;
        struct {
            dt_run_state now;
            int64_t time_ms;
        } state;
        const dt_attempt_record *record; /* copied; its strings must outlive the rows */
        struct {                         /* a piece of a part (task_folder.h) */
            int64_t part, offset;
            bool last, hex; /* hex: the bytes are in hexadecimal */
            const char *text;
        } piece;
        struct {
            dt_rank_log *log; /* outlives the rows */
            int64_t rank;
            const char *text; /* with its newline */
        } line;
    };
} dt_row;

dt_run_rows *dt_run_rows_open(const dt_run_rows_setup *setup);
void dt_run_rows_close(dt_run_rows *rows); /* accepts NULL */

dt_status dt_run_rows_begin_writer(dt_run_rows *rows, uv_loop_t *loop,
                                   const dt_store_writer_calls *calls, void *context,
                                   dt_error *err);
void dt_run_rows_end_writer(dt_run_rows *rows);
dt_store_writer *dt_run_rows_writer(const dt_run_rows *rows); /* NULL: none */

dt_status dt_run_rows_begin(dt_run_rows *rows, dt_error *err); /* does nothing if one is open */
bool dt_run_rows_is_open(const dt_run_rows *rows);
/* *batch: number of the batch, 0 without a writer. */
dt_status dt_run_rows_commit(int64_t *batch, dt_run_rows *rows, dt_error *err);

/* Writes the row, as the mode says. */
dt_status dt_run_rows_put(dt_run_rows *rows, const dt_row *row, dt_error *err);

#endif
