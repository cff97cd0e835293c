/* session_int: what the files of a session share.
 *
 * A session is one attempt. If another attempt follows, the session ends and a new session loads it; no state lives
 * longer, and there is none outside of the struct. The process may be killed at any moment, so it knows nothing that
 * is not in the store, the plan or the agents' journals. If the store is locked or the disk is full, it waits
 * (collect/run_rows.h); any other store error ends the session, and supervise.c starts a new one.
 *
 *   supervise.c     lock, load, loop, end
 *   load.c          state from plan and store, memory from stored events
 *   missing_plan.c  ends a run without a plan
 *   state.c         the [state][event] table and its handlers
 *   nodes.c         callbacks of the node links, rendezvous
 *   callbacks.c    callbacks of collector, fetcher, reaper, cleanup
 *   watch.c         slow and hanging ranks
 *   control.c       runs/ID/control.sock
 *   outcome.c       what the end waits for, how the attempt ended
 *   next_attempt.c  creates the next attempt
 *   grow.c          back to nodes that were lost
 *   fault.c         injected faults
 *   session.c       helpers for all
 */
#ifndef DT_RUNNER_SUPERVISOR_SESSION_SESSION_INT_H
#define DT_RUNNER_SUPERVISOR_SESSION_SESSION_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <uv.h>

#include "base/json.h"
#include "base/memory.h"
#include "recipes/plan/plan.h"
#include "runner/channel/poll_clock.h"
#include "runner/channel/stream.h"
#include "runner/supervisor/cleanup/cleanup.h"
#include "runner/supervisor/collect/collection.h"
#include "runner/supervisor/collect/collector.h"
#include "runner/supervisor/connection/node_link.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/policy/slow.h"
#include "runner/supervisor/policy/verdict.h"
#include "runner/supervisor/policy/watchdog.h"
#include "runner/supervisor/supervisor.h"
#include "runner/transport/transport.h"
#include "store/run.h"

typedef struct dt_session dt_session;
typedef struct dt_control dt_control;
typedef struct dt_session_fault dt_session_fault;

typedef struct dt_supervised_node {
    dt_session *session;
    int64_t index;
    const char *name;
    const char *here;   /* attempt-N/node-K on this machine */
    dt_node_link *link; /* connection to the node */
    bool rebooted;      /* true if the node was rebooted since its ranks were started */
    bool start_sent;    /* the start command was sent on this connection */
    /* monotonic clock of the node at its last `alive`; 0: none on this connection */
    int64_t beat_ms;
} dt_supervised_node;

/* What the plan's recipe says (load.c). */
typedef struct dt_session_settings {
    const char *checkpoints; /* the plan's directory */
    const char *webhook;     /* unexpanded URL, "" if none */
    const char *variables;   /* names that the recipe's `env` references, separated by commas */
    double grace_seconds, launcher_lost_seconds;
    double hang_seconds; /* 0: hangs are not detected */
    bool is_command;     /* the ranks run a program of the user */
    int64_t nodes_min, max_restarts;
    int64_t steps, epochs; /* the schedule */
} dt_session_settings;

/* The watch over slow and hanging ranks (watch.c). */
typedef struct dt_session_watch {
    dt_silence silence;
    dt_watchdog watchdog;
    bool slow_reported;          /* slowness of this silence was reported */
    bool diagnosis_requested;    /* the ranks were asked for a diagnosis */
    double requested_at_seconds; /* length of the silence at that time */
    json_t *diagnoses;           /* [by rank] their diagnoses */
    dt_slow slow;                /* why the steps take so long */
} dt_session_watch;

/* Requests on runs/ID/control.sock (control.c). */
typedef struct dt_session_control {
    dt_listener *listener;
    dt_control *clients;
    uv_timer_t answer_timer; /* answers that wait for the store */
} dt_session_control;

/* The attempt as a restart of another, and the restart after it (outcome.c, state.c). */
typedef struct dt_session_restart {
    int64_t count;          /* restarts in a row without a new checkpoint; 0: started by a person */
    bool previous_stepped;  /* the previous attempt, which this one restarts, did a step */
    bool follows;           /* another attempt follows this one */
    uv_timer_t pause_timer; /* before a restart of a command */
    uv_timer_cb on_pause_over; /* dt_state_pause_over */
} dt_session_restart;

/* The nodes that the run had before it lost them (grow.c). */
#define DT_EVENT_KIND_GROWN "grown"
typedef struct dt_missing_node dt_missing_node;
typedef struct dt_session_grow {
    int64_t count;        /* how often the run has grown */
    bool grown;           /* this attempt did */
    int64_t whole;        /* attempt that had all nodes; 0: this one has */
    int64_t seen_attempt; /* while events are read */
    dt_missing_node *nodes;
    int64_t node_count;
    int64_t asked;   /* nodes that have not answered yet */
    bool refused;    /* one of them cannot be had */
    int places_lock; /* of the queue, until the next attempt has its place; -1: none */
} dt_session_grow;

struct dt_session {
    uv_loop_t loop;
    dt_poll_clock clock;
    dt_arena arena;
    dt_store *store;
    const char *run, *folder;
    int64_t attempt, world_size, node_count;
    dt_attempt_record record; /* record of the attempt; strings live in the arena */
    json_t *plan;
    const dt_plan *task_plan; /* the parsed plan if the task has lines, else NULL */
    const char *plan_problem; /* why the plan is missing; NULL if it is not (missing_plan.c) */
    dt_session_settings settings;
    const char *secret;               /* secret of the run, hexadecimal */
    dt_notifier *notifier;            /* owned by the process; borrowed */
    const dt_supervisor_queue *queue; /* NULL: none */
    int64_t start_step;
    double begun_seconds;
    bool rows_lost; /* ranks were started, but the store has no rows of them: they were lost */

    dt_run_state state;
    bool has_run; /* all ranks were ready at some time */
    dt_supervised_node *nodes;
    json_t *offers;                 /* rendezvous: name → [value or null, by rank] */
    dt_collector *collector;        /* rows and journal events */
    dt_checkpoint_fetcher *fetcher; /* fetches checkpoints from the nodes */
    dt_reaper *reaper;              /* ends ranks on nodes that earlier attempts lost */
    dt_collection *collection;      /* brings the files of a command here */
    dt_cleanup *cleanup;
    dt_verdict verdict;
    dt_session_watch watch;
    dt_session_control control;
    dt_session_restart restart;
    dt_session_grow grow;
    dt_session_fault *fault; /* injected by `dtrun smoke` (fault.c); NULL: none */

    enum {
        DT_LEAVE_NOT_YET,
        DT_LEAVE_WAITS, /* agents are asked to leave, then the attempt ends */
        DT_LEAVE_OVER
    } leave;
    uv_timer_t leave_timer; /* ends the wait */
    bool progressed;        /* events were stored some time after the start (callbacks.c) */
    dt_status failure;      /* why the session ends before the run does */
    dt_error failure_error;
};

/* --- grow.c */
/* Call with each event of the run, in order, then load once plan and store are there. */
void dt_grow_remember(dt_session *session, const dt_store_event *event);
void dt_grow_load(dt_session *session);
/* A checkpoint was saved. */
void dt_grow_at_save(dt_session *session);
void dt_grow_close(dt_session *session);

/* --- fault.c */
void dt_session_fault_open(dt_session *session);
void dt_session_fault_close(dt_session *session);
/* Injects the fault once its step was reported. Call it when events were read. */
dt_status dt_session_fault_check(dt_session *session, dt_error *err);
/* Adds the faults of the engine to the environment of the ranks. */
void dt_session_fault_environment(json_t *environment);

/* --- session.c */
/* Ends the session because of an error (of the store or the system); supervise.c starts another
 * one. */
void dt_session_fail(dt_session *session, dt_status st, const dt_error *err);
/* Writes the record of the attempt (attempt_record.h): through the writer thread; or at once on
 * this thread, at the end, when the writer is done. */
dt_status dt_session_keep(dt_session *session, dt_error *err);
/* Writes the record with the end of the attempt. */
void dt_session_keep_end(dt_session *session, dt_run_state state, int code, const char *reason);
/* Records and commits an event {event, message} of the supervisor. */
dt_status dt_session_note(dt_session *session, const char *event, const char *message,
                          dt_error *err);
/* the node is lent, by a Slurm job for example: once that is over, the node never comes back */
static inline bool dt_node_is_lent(const dt_supervised_node *node)
{
    return dt_transport_is_lent(node->name);
}
/* a rank was started there in this attempt */
bool dt_node_has_started(const dt_supervised_node *node);
/* Also true if a step was made (all ranks take part in it), or if the rows that would tell were
 * lost with the store. */
bool dt_node_may_have_started(const dt_supervised_node *node);
int64_t dt_session_count_lost(const dt_session *session);

static inline double dt_session_now(const dt_session *session)
{
    return session->clock.seconds; /* advances only while input is read (poll_clock.h) */
}

static inline const dt_collected_rank *dt_session_rank(const dt_session *session, int64_t rank)
{
    return dt_collector_rank(session->collector, rank);
}

static inline const dt_collected_node *dt_session_row(const dt_supervised_node *node)
{
    return dt_collector_node(node->session->collector, node->index);
}

static inline bool dt_node_is_lost(const dt_supervised_node *node)
{
    return dt_node_link_phase(node->link) == DT_NODE_LOST;
}

/* --- load.c */
dt_status dt_session_load(dt_session *session, const char *run, dt_error *err);
void dt_session_unload(dt_session *session);

/* --- missing_plan.c */
/* Builds a plan with nodes and ranks only, from rows and folders. `why` is copied: it becomes
 * the reason of the run's failure. */
dt_status dt_missing_plan_substitute(dt_plan *plan, dt_session *session, const char *why,
                                     dt_error *err);
/* Moves the run to STOPPING: the attempt is lost because of the missing plan, and its nodes are
 * asked to stop. */
dt_status dt_missing_plan_stop(dt_session *session, dt_error *err);

/* --- callbacks.c, nodes.c */
dt_status dt_components_open_collector(dt_session *session, dt_error *err);
/* Call once the rows are loaded. */
dt_status dt_components_open(dt_session *session, dt_error *err);
void dt_components_close(dt_session *session);
void dt_components_free(dt_session *session); /* after the loop has no more handles */
/* True if the nodes do not share the checkpoint folder: then checkpoints are fetched. */
bool dt_components_fetch_checkpoints(const dt_session *session);
/* The same for checkpoints of a command's program. */
bool dt_components_bring_saved(const dt_session *session);
void dt_components_fetch(dt_session *session, const dt_message *message);
/* Opens the links and restores the paths of each node; call once plan and rows are loaded. */
dt_status dt_nodes_open(dt_session *session, dt_error *err);

/* --- watch.c */
void dt_watch_open(dt_session *session); /* call once plan and rows are loaded */
/* Handles an `alive` message: the state of the node's ranks and the time that passed there. May
 * end the attempt. */
void dt_watch_alive(dt_supervised_node *node, const dt_message *message);
/* Updates the watch from a journal event. */
void dt_watch_event(dt_session *session, const dt_message *message);

/* --- next_attempt.c */
typedef struct dt_next_attempt {
    int64_t attempt, restarts, start_step;
    const char *checkpoint;         /* "": from the start */
    const char *program_checkpoint; /* checkpoint of a command's program (plan.h); "": none */
    /* as recorded in the checkpoint; 0: unknown, or the checkpoint is of another attempt */
    int64_t steps_total;
    int64_t nodes_lost; /* lost nodes that are left out */
    int64_t as_attempt; /* it has the nodes of this attempt; 0: those of the attempt before */
    bool stepped;       /* the failed attempt did a step */
    bool waits;       /* it waits in the queue: the attempt before was preempted, or got no place */
    const char *kind; /* of the event that records it: "restart", "preempted", "refused" */
} dt_next_attempt;

/* Finds the checkpoint that the next attempt would resume from. */
dt_status dt_next_attempt_find(dt_next_attempt *next, dt_session *session, dt_error *err);
/* Ends this attempt with `state`, `code` and `reason`, and adds the next one: queued, or waiting if a preemption stopped
 * this one. */
dt_status dt_next_attempt_add(dt_session *session, const dt_next_attempt *next, dt_run_state state,
                              int code, const char *reason, dt_error *err);

/* --- outcome.c */
/* True if another attempt will follow; call once all events are known. */
bool dt_restart_is_due(dt_session *session);

/* --- control.c */
void dt_control_take(void *session, int connection);
void dt_control_stored(dt_session *session); /* answers the requests whose changes are now stored */
void dt_control_close_all(dt_session *session);

/* state: dispatches the events of an attempt to the handlers of its state.
 *
 *                 ┌────────────────────── stop ──────────────────────┐
 *                 │            ┌───────── stop, failed, lost ────────┤
 *                 │            │            ┌─ stop, failed, lost ───┤
 *   queued ──► preparing ──► starting ──► running                    ▼
 *       begin        attached      │ ready    │ released         stopping
 *                    (all)         └──────────┤                      │ released
 *                                             ▼                      ▼
 *                                finished, failed, stopped (as the verdict says)
 *
 * begin      a supervisor follows the run, for the first time or after another supervisor died
 * attached   the agent of a node answered
 * heard      new journal events were read
 * ready      every rank is ready
 * failed     a rank died
 * lost       a node is unavailable, or has no record of the ranks it should run
 * stop       a person requested a stop
 * released   every node confirmed that nothing is left, or was given up
 *
 * Each cell of the table has a handler, or says that the event is ignored or impossible (dt_reaction).
 */

typedef enum dt_state_event {
    DT_EVENT_BEGIN,
    DT_EVENT_ATTACHED,
    DT_EVENT_HEARD,
    DT_EVENT_READY,
    DT_EVENT_FAILED,
    DT_EVENT_LOST,
    DT_EVENT_STOP,
    DT_EVENT_RELEASED,
    DT_STATE_EVENT_COUNT
} dt_state_event;

/* Returns what the table says of an event in a state. */
dt_reaction dt_state_reaction(dt_run_state state, dt_state_event event);

/* Runs the handler for the event, if the current state handles it. node: the node that it is about
 * (attached, lost), else NULL. */
void dt_state_dispatch(dt_session *session, dt_state_event event, dt_supervised_node *node);

/* Dispatches the events that follow from the current facts: heard, ready, stop, failed,
 * released. */
void dt_state_update(dt_session *session);

/* Begins the attempt when the pause before a restart is over. timer->data: the session. */
void dt_state_pause_over(uv_timer_t *timer);

/* Handles a stop request: records it, submits it to the store and starts ending the ranks. */
dt_status dt_state_ask_stop(dt_session *session, bool now, dt_error *err);

/* --- state.c, outcome.c: the handlers; an error ends the session */
typedef dt_status dt_state_fn(dt_session *session, dt_supervised_node *node, dt_error *err);
dt_state_fn dt_action_prepare, dt_action_connect, dt_action_start_if_all, dt_action_start_idle,
    dt_action_expect_ranks, dt_action_run, dt_action_end_ranks, dt_action_end_node,
    dt_action_conclude;

#endif
