/* collector: turns the journals of a run's nodes into rows of its history.
 *
 * All events of one read of a channel form one batch (run_rows.h), together with the number of the next
 * event: after a crash the journal is read from there, so nothing is lost or doubled. The agent gets an
 * acknowledgement once the batch is on disk. The meaning of an event takes effect at once: after a crash the
 * next supervisor reads the same events again.
 *
 *   agent ──event──► take ──► rows, own events ──commit──► store_writer ──► store, logs
 *                     │                                        │
 *                     └──► calls.event: the memory             └──► calls.acknowledge, stored, pause
 *
 * If events are missing (damaged lines on the node, or a history that is an older copy than what the agent
 * still keeps), their numbers jump: the gap is recorded as an event, and reading continues after it. A jump
 * that a restarted agent makes itself loses nothing: its first line names the number before it (`after`).
 *
 * Threads    call from the loop's thread
 */
#ifndef DT_COLLECT_COLLECTOR_H
#define DT_COLLECT_COLLECTOR_H

#include <uv.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "recipes/plan/plan.h"
#include "runner/channel/poll_clock.h"
#include "runner/supervisor/collect/run_rows.h"
#include "runner/supervisor/protocol/message.h"

typedef struct dt_collector dt_collector;

/* Read only; changed by the functions below. */
typedef struct dt_collected_rank {
    dt_rank row; /* without its log_bytes */
    dt_rank_log log;
    bool changed, ready, exited;
} dt_collected_rank;

typedef struct dt_collected_node {
    dt_node row;
    bool changed;
    bool released;       /* its journal reports that nothing is left */
    int64_t step;        /* newest step that one of its ranks reported */
    double step_seconds; /* time of that, or of the last phase; 0: none yet */
} dt_collected_node;

/* Callbacks to the owner of the run; all MUST be set. node: index of the node. */
typedef struct dt_collector_calls {
    bool (*is_over)(void *context); /* the session is ending: nothing more is done */
    /* An event, for the session's memory: as it arrives, and again when the store is loaded. */
    void (*event)(void *context, int64_t node, const dt_message *message);
    /* A checkpoint. Return true if its row will be added later. */
    bool (*checkpoint)(void *context, const dt_message *message);
    /* The node's events below this number are on disk. */
    void (*acknowledge)(void *context, int64_t node, int64_t sequence);
    void (*released)(void *context, int64_t node); /* the release of the node is on disk too */
    void (*stored)(void *context);                 /* more is stored or durable */
    /* Too many events wait to be stored: stop or resume reading the journals. */
    void (*pause)(void *context, bool pause);
    /* a lasting error of the store */
    void (*failed)(void *context, dt_status st, const dt_error *err);
} dt_collector_calls;

/* Parameters; all borrowed, and must outlive the collector. */
typedef struct dt_collector_setup {
    dt_run_rows_setup rows;
    const dt_poll_clock *clock;
    const char *checkpoints; /* the plan's directory */
    int64_t world_size, node_count;
    const dt_plan_task *task; /* NULL: the task is training */
} dt_collector_setup;

dt_status dt_collector_open(dt_collector **out, const dt_collector_setup *setup,
                            const dt_collector_calls *calls, void *context, dt_error *err);
void dt_collector_close(dt_collector *collector); /* waits for the writer; accepts NULL */
/* Starts the writer thread (run_rows.h). */
dt_status dt_collector_begin(dt_collector *collector, uv_loop_t *loop, dt_error *err);
void dt_collector_end(dt_collector *collector);

/* --- rows */
const dt_collected_rank *dt_collector_rank(const dt_collector *collector, int64_t rank);
const dt_collected_node *dt_collector_node(const dt_collector *collector, int64_t node);
/* Sets a row as the plan or the store has it; strings are borrowed. */
void dt_collector_set_rank(dt_collector *collector, const dt_rank *row);
void dt_collector_set_node(dt_collector *collector, int64_t node, const dt_node *row);
/* Sets the stored length of the rank's log. */
void dt_collector_set_log(dt_collector *collector, int64_t rank, int64_t bytes);
dt_status dt_collector_open_logs(dt_collector *collector, dt_error *err);
/* Writes all rows for the first time. */
dt_status dt_collector_add_rows(dt_collector *collector, dt_error *err);
/* Set a field of a node's row; the text is borrowed. */
void dt_collector_show_node(dt_collector *collector, int64_t node, const char *state);
void dt_collector_name_node(dt_collector *collector, int64_t node, const char *name);
void dt_collector_boot_node(dt_collector *collector, int64_t node, const char *boot_id);
/* Marks the node as released: its ranks were ended without the agent. */
void dt_collector_release_node(dt_collector *collector, int64_t node);
/* Writes another row: of the run's state, of a past attempt's node, of the attempt's record. */
dt_status dt_collector_put(dt_collector *collector, const dt_row *row, dt_error *err);

/* --- events */
/* Adds a numbered event of a journal. */
dt_status dt_collector_take(dt_collector *collector, int64_t node, const dt_message *message,
                            dt_error *err);
/* Records a line that cannot be parsed, and why, and skips it. *known: false if the line has no
 * number. */
dt_status dt_collector_skip(bool *known, dt_collector *collector, int64_t node, const char *text,
                            size_t length, const char *why, dt_error *err);
/* Restores the memory of an event that is already stored. */
void dt_collector_remember(dt_collector *collector, int64_t node, const dt_message *message);
/* Records an event of the supervisor in the open or a new batch. Takes `event`. */
dt_status dt_collector_note(dt_collector *collector, json_t *event, dt_error *err);
/* Writes the row of a checkpoint that is complete here. */
dt_status dt_collector_checkpoint(dt_collector *collector, const dt_message *message,
                                  dt_error *err);
/* Submits what was collected to the store. */
dt_status dt_collector_commit(dt_collector *collector, dt_error *err);

/* --- progress */
int64_t dt_collector_submit(dt_collector *collector); /* returns the number of the last batch */
/* True if the batch is durable (survives a power loss); request_sync asks for that at once. */
bool dt_collector_is_durable(const dt_collector *collector, int64_t batch);
void dt_collector_request_sync(dt_collector *collector);
bool dt_collector_is_idle(const dt_collector *collector); /* everything is stored */
/* True if the history cannot be written at the moment; appends the reason to `why`. */
bool dt_collector_is_stalled(const dt_collector *collector, dt_strbuf *why);
bool dt_collector_is_paused(const dt_collector *collector);
bool dt_collector_has_gaps(const dt_collector *collector); /* journal events were lost */
void dt_collector_remember_gap(dt_collector *collector);
/* Returns the number of completed lines of the task; 0 if the task is training. */
int64_t dt_collector_lines_done(const dt_collector *collector);
void dt_collector_set_step(dt_collector *collector, int64_t step); /* stored step */
const dt_progress *dt_collector_progress(const dt_collector *collector);
int64_t dt_collector_steps_total(const dt_collector *collector); /* as reported; 0: not yet */

/* Moves the rows of the run from `old`, whose file was removed or replaced, to the current store
 * file. Call on any thread that owns `old`. */
dt_status dt_collector_move(const dt_run_rows_setup *rows, dt_store *old, dt_error *err);

#endif
