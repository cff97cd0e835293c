/* run_rows: writes a run's rows into the store, on a thread of its own (store_writer.c), and the output of
 * its ranks into logs.
 *
 * Each row is added to the open batch, which commit ends. Before there is a writer (while the
 * session is loaded) a row is written at once, in a transaction that begin opens.
 *
 * Adding a kind of row: a member of the union, and a case in keep_texts and in write_row (run_rows.c).
 *
 * Ownership  texts are copied if they must outlive the call
 * Threads    call from the loop's thread; rank logs belong to the writer's thread once it runs
 */
#ifndef DT_RUNNER_SUPERVISOR_COLLECT_RUN_ROWS_H
#define DT_RUNNER_SUPERVISOR_COLLECT_RUN_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "store/curve.h"
#include "store/event.h"
#include "store/run.h"

/* rank_log: writes the output of a rank to runs/ID/logs/rank-N.log.
 *
 * The file is written before the transaction that stores its length is committed. It is truncated to the
 * stored length when it is opened, or when the transaction is rolled back: so every line is in it once,
 * whenever the supervisor dies. All attempts share the file. Beyond KEEP_BYTES the oldest part is freed as a
 * hole: lengths do not change, and readers (log_tail) skip it. A file system without holes keeps everything.
 *
 * Threads    one at a time: the store's writer, once there is one
 */

typedef struct dt_rank_log {
    int fd;
    int64_t bytes, stored_bytes; /* written, and length in the store */
    bool unsynced;               /* lines were added since the last sync */
} dt_rank_log;

/* folder: runs/ID. */
dt_status dt_rank_log_open(dt_rank_log *log, const char *folder, int64_t rank, dt_error *err);
dt_status dt_rank_log_write(dt_rank_log *log, const char *folder, int64_t rank, const char *text,
                            size_t length, dt_error *err);
/* after its transaction was committed or rolled back */
void dt_rank_log_settle(dt_rank_log *log, bool committed);
dt_status dt_rank_log_sync(dt_rank_log *log, dt_error *err); /* to the disk */
void dt_rank_log_close(dt_rank_log *log);

/* store_writer: writes the run store on a thread of its own, so that a lock on the store or a slow disk does
 * not block the loop: agents are answered, silence is judged, and stops are handled.
 *
 *   loop     add, add, add, submit ──► queue ──► one transaction      thread
 *            on_stored(number)     ◄── async ◄── committed
 *
 * A submit ends a batch. Batches are stored in order, each completely or not at all; several waiting batches
 * share a transaction. A failure that may be temporary (the store is locked, its disk is full) is retried once
 * a second, without limit; any other failure is reported once, and nothing more is written.
 *
 * A committed transaction survives the death of this process, but not a power loss: the store's log is synced
 * once a second (a sync per transaction would cost as much as everything else), and batches stored before a
 * sync are then reported as durable.
 *
 * Ownership  add copies the bytes that it is given; copy what it points to with dt_store_writer_copy
 * Threads    call from the loop's thread. The added functions run on the writer's thread, with its own store,
 *            and again if a transaction is repeated
 */

typedef struct dt_store_writer dt_store_writer;

/* Makes one change in the open transaction. */
typedef dt_status dt_store_write_fn(dt_store *store, const void *what, dt_error *err);

typedef struct dt_store_writer_calls {
    /* All batches up to this number are stored and visible to readers. */
    void (*stored)(void *context, int64_t batch);
    /* All batches up to this number are durable. Called once a second, and after a requested
     * sync. NULL: nothing is synced. */
    void (*durable)(void *context, int64_t batch);
    /* On the writer's thread, before `durable`: syncs files that belong to the batches. NULL:
     * none. */
    dt_status (*sync)(void *context, dt_error *err);
    /* On the writer's thread: the store's file was removed or replaced; `old` is the store that
     * was written to. Afterwards nothing more is written, and a failure is reported. NULL: not
     * checked. */
    dt_status (*replaced)(void *context, dt_store *old, dt_error *err);
    /* A lasting failure; called once. */
    void (*failed)(void *context, dt_status st, const dt_error *err);
    /* On the writer's thread: a transaction was committed, or rolled back to be tried again.
     * NULL: no callback. */
    void (*settled)(void *context, bool committed);
} dt_store_writer_calls;

/* path: as for dt_store_open; borrowed until close. */
dt_status dt_store_writer_open(dt_store_writer **out, const char *path, uv_loop_t *loop,
                               const dt_store_writer_calls *calls, void *context, dt_error *err);
/* Discards what is not stored yet, and waits for the thread (up to a second while the store is
 * locked). Accepts NULL. The loop must run once more. */
void dt_store_writer_close(dt_store_writer *writer);

/* Returns a copy that lives as long as the open batch. */
const void *dt_store_writer_copy(dt_store_writer *writer, const void *what, size_t bytes);
void dt_store_writer_add(dt_store_writer *writer, dt_store_write_fn *write, const void *what,
                         size_t bytes);
/* Ends the batch if anything was added; returns the number of the last batch. */
int64_t dt_store_writer_submit(dt_store_writer *writer);

/* Asks for a sync as soon as everything submitted is stored. */
void dt_store_writer_request_sync(dt_store_writer *writer);

/* True if batches cannot be stored at the moment; appends the reason to `why`. */
bool dt_store_writer_is_stalled(dt_store_writer *writer, dt_strbuf *why);

/* True if everything that was added is stored and reported; also without a writer. */
bool dt_store_writer_is_idle(const dt_store_writer *writer);
/* True if the batch survives a power loss. */
bool dt_store_writer_is_durable(const dt_store_writer *writer, int64_t number);
size_t dt_store_writer_waiting_bytes(dt_store_writer *writer);

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
    DT_ROW_RECORD, /* record of the attempt, to its folder; a failure is only logged */
    DT_ROW_WHY,  /* why the steps take so long, to the attempt's folder; a failure is only logged */
    DT_ROW_PART, /* part of a task, to its folder */
    DT_ROW_LINE, /* line of a rank's log */
    DT_ROW_DIGESTS, /* piece of a rank's record, to its folder */
} dt_row_kind;

typedef struct dt_row {
    dt_row_kind kind;
    int64_t attempt; /* attempt of NODE and RANK; the others have their own */
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
        const char *text;                /* of WHY: JSON */
        const dt_attempt_record *record; /* copied; its strings must outlive the rows */
        struct {                         /* a piece of a part (task_folder.h) */
            int64_t part, offset;
            bool last, hex; /* hex: the bytes are in hexadecimal */
            const char *text;
        } piece;
        struct { /* a piece of a record (digest_file.h) */
            int64_t rank, offset;
            const char *text;
        } digests;
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
