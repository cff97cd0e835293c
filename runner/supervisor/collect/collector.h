/* collector: the journals of a run's nodes become rows of its history.
 *
 * Of one read of a channel all events are one batch (store_writer.h), together with the number of
 * the next event that is wanted: after a crash the journal is read from there, and nothing is lost
 * or doubled. The agent is told once the batch is on the disk. What the events mean is known at
 * once: who comes after a crash reads the same events again.
 *
 *   agent ──event──► take ──► rows, own events ──commit──► store_writer ──► store, logs
 *                     │                                        │
 *                     └──► calls.event: the memory             └──► calls.acknowledge, stored, pause
 *
 * Where events are not available any more (lines were damaged on the node, or the history is an
 * older copy than what its agent still keeps) their numbers jump: what is missing is noted as an
 * event, and the journal is read on from there. A jump that an agent made itself when it was
 * restarted loses nothing: its first line says `after` which number it comes.
 *
 * Threads    the loop's
 */
#ifndef DT_COLLECT_COLLECTOR_H
#define DT_COLLECT_COLLECTOR_H

#include <uv.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "recipes/plan.h"
#include "runner/channel/poll_clock.h"
#include "runner/supervisor/collect/history.h"
#include "runner/supervisor/protocol/message.h"

typedef struct dt_collector dt_collector;

/* Changed through the functions below alone. */
typedef struct dt_collected_rank {
    dt_rank row; /* but for its log_bytes */
    dt_rank_log log;
    bool changed, ready, exited;
} dt_collected_rank;

typedef struct dt_collected_node {
    dt_node row;
    bool changed;
    bool released;       /* its journal says that nothing is left */
    int64_t step;        /* the newest that a rank of it reported, */
    double step_seconds; /* ... and when, or when a phase began; 0: none yet */
} dt_collected_node;

/* What it tells, to whoever has the run; all MUST be there. node: its index. */
typedef struct dt_collector_calls {
    bool (*is_over)(void *context); /* the session ends: nothing more is done */
    /* An event, for the memory: as it comes, and again when the store is loaded. */
    void (*event)(void *context, int64_t node, const dt_message *message);
    /* A checkpoint. True: it is taken care of, and its row comes later. */
    bool (*checkpoint)(void *context, const dt_message *message);
    /* What the node's journal has below this number is on the disk. */
    void (*acknowledge)(void *context, int64_t node, int64_t sequence);
    void (*released)(void *context, int64_t node); /* ... and the last of it was that it let go */
    void (*stored)(void *context);                 /* more is in the store, or on its disk */
    /* Too much waits to be stored: journals are left where they are until there is less. */
    void (*pause)(void *context, bool pause);
    void (*failed)(void *context, dt_status st, const dt_error *err); /* of the store; lasting */
} dt_collector_calls;

/* What it must know; all of it borrowed, and longer-lived. */
typedef struct dt_collector_setup {
    dt_history_setup history;
    const dt_poll_clock *clock;
    const char *checkpoints; /* the plan's directory */
    int64_t world_size, node_count;
    const dt_plan_task *task; /* NULL: to train */
} dt_collector_setup;

dt_status dt_collector_open(dt_collector **out, const dt_collector_setup *setup,
                            const dt_collector_calls *calls, void *context, dt_error *err);
void dt_collector_close(dt_collector *collector); /* waits for the writer; accepts NULL */
/* From now on a thread writes (store_writer.h). */
dt_status dt_collector_begin(dt_collector *collector, uv_loop_t *loop, dt_error *err);
void dt_collector_end(dt_collector *collector);

/* --- rows */
const dt_collected_rank *dt_collector_rank(const dt_collector *collector, int64_t rank);
const dt_collected_node *dt_collector_node(const dt_collector *collector, int64_t node);
/* As the plan or the store has it; strings are borrowed. */
void dt_collector_set_rank(dt_collector *collector, const dt_rank *row);
void dt_collector_set_node(dt_collector *collector, int64_t node, const dt_node *row);
/* The log of the rank is so long in the store. */
void dt_collector_set_log(dt_collector *collector, int64_t rank, int64_t bytes);
dt_status dt_collector_open_logs(dt_collector *collector, dt_error *err);
/* All are written, for the first time. */
dt_status dt_collector_add_rows(dt_collector *collector, dt_error *err);
/* Of a node's row; the text is borrowed. */
void dt_collector_show_node(dt_collector *collector, int64_t node, const char *state);
void dt_collector_name_node(dt_collector *collector, int64_t node, const char *name);
void dt_collector_boot_node(dt_collector *collector, int64_t node, const char *boot_id);
/* What ran there was ended past its agent: nothing is left. */
void dt_collector_release_node(dt_collector *collector, int64_t node);
/* The row of a node of any attempt. */
dt_status dt_collector_past_node(dt_collector *collector, int64_t attempt, const dt_node *row,
                                 dt_error *err);

/* --- events */
/* A numbered one. */
dt_status dt_collector_take(dt_collector *collector, int64_t node, const dt_message *message,
                            dt_error *err);
/* A line of the node that cannot be understood, and why: noted and left out. *known: false where it
 * has no number. */
dt_status dt_collector_skip(bool *known, dt_collector *collector, int64_t node, const char *text,
                            size_t length, const char *why, dt_error *err);
/* One that the store has. */
void dt_collector_remember(dt_collector *collector, int64_t node, const dt_message *message);
/* An event of the supervisor's own, in the open or a new batch. Takes `event`. */
dt_status dt_collector_note(dt_collector *collector, json_t *event, dt_error *err);
/* The row of a checkpoint that is whole here. */
dt_status dt_collector_checkpoint(dt_collector *collector, const dt_message *message,
                                  dt_error *err);
dt_status dt_collector_state(dt_collector *collector, dt_run_state state, dt_error *err);
dt_status dt_collector_record_attempt(dt_collector *collector, const dt_attempt_record *attempt,
                                      dt_error *err);
/* What was collected is on its way into the store. */
dt_status dt_collector_commit(dt_collector *collector, dt_error *err);

/* --- how far it is */
int64_t dt_collector_submit(dt_collector *collector); /* the number of the last batch */
/* Whether no power loss takes the batch; and that it is wanted so at once. */
bool dt_collector_is_durable(const dt_collector *collector, int64_t batch);
void dt_collector_request_sync(dt_collector *collector);
bool dt_collector_is_idle(const dt_collector *collector); /* all is stored */
/* Whether the history cannot be written at the moment; then the reason is appended to `why`. */
bool dt_collector_is_stalled(const dt_collector *collector, dt_strbuf *why);
bool dt_collector_is_paused(const dt_collector *collector);
bool dt_collector_has_gaps(const dt_collector *collector); /* events of a journal were lost */
void dt_collector_remember_gap(dt_collector *collector);
/* Lines of the task that something was made of; 0 where there is none. */
int64_t dt_collector_lines_done(const dt_collector *collector);
void dt_collector_set_step(dt_collector *collector, int64_t step); /* that the store has */
const dt_progress *dt_collector_progress(const dt_collector *collector);
int64_t dt_collector_steps_total(const dt_collector *collector); /* as told; 0: not yet */

/* The store's file was removed or replaced: what `old` has of the run goes to the one that is there
 * now. On any thread that has `old`. */
dt_status dt_collector_move(const dt_history_setup *history, dt_store *old, dt_error *err);

#endif
