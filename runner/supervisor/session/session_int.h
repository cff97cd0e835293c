/* session_int: what the files of a session share.
 *
 *   supervise.c   lock, load, loop, end          load.c      everything known, from plan and store
 *   missing_plan.c     a run without a plan is ended  parts.c     what the rooms below tell
 *   nodes.c       what the links tell            control.c   runs/ID/control.sock
 *   watch.c       ranks that make no step        diagnosis.c which of them holds up the others
 *   state.c       the [state][event] table       actions.c   what the states do
 *   conclude.c    what the end waits for         outcome.c   how it ended, and what follows
 *   next_attempt.c   the attempt after this one  recall.c    what the store remembers
 *   rendezvous.c  everyone's values              notify.c    a webhook is notified
 *   cut.c         a connection that is cut for a test
 *   session.c     what all of them ask
 *
 * Rooms  protocol/    a line of an agent      folder/   runs/ID      policy/   what is decided
 *        connection/  the way to each node    collect/  journals → history
 *        cleanup/     what is left on nodes
 *
 * A session is one attempt. Where a failed one is followed by another, the session ends and the
 * next one loads it: there is no state that lives longer, and none outside of the struct.
 *
 * The process may be killed at any moment: it knows nothing that is not in the store, the plan or
 * the agents' journals. A store that is locked or full is waited for (store_writer.h); any other
 * error of it ends the session (supervise.c) and begins it anew.
 */
#ifndef DT_SESSION_INT_H
#define DT_SESSION_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/arena.h"
#include "base/json.h"
#include "recipes/plan.h"
#include "runner/channel/listener.h"
#include "runner/channel/poll_clock.h"
#include "runner/supervisor/cleanup/cleanup.h"
#include "runner/supervisor/cleanup/reap.h"
#include "runner/supervisor/collect/checkpoint_fetcher.h"
#include "runner/supervisor/collect/collector.h"
#include "runner/supervisor/connection/node_link.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/policy/silence.h"
#include "runner/supervisor/policy/verdict.h"
#include "runner/supervisor/policy/watchdog.h"
#include "runner/supervisor/session/notify.h"
#include "store/store.h"

typedef struct dt_session dt_session;
typedef struct dt_control dt_control;

typedef struct dt_supervised_node {
    dt_session *session;
    int64_t index;
    const char *name;
    const char *here;   /* attempt-N/node-K on this machine */
    dt_node_link *link; /* the way to it, and how far it is */
    bool rebooted;      /* since its ranks were started */
    bool start_sent;    /* on this connection */
    int64_t beat_ms;    /* its monotonic clock at its last `alive`; 0: none on this connection */
} dt_supervised_node;

/* A connection that is cut for a test (cut.c). */
typedef struct dt_cut {
    int64_t node, step; /* step 0: none, or it was */
    double seconds;
} dt_cut;

struct dt_session {
    uv_loop_t loop;
    dt_poll_clock clock;
    dt_arena arena;
    dt_store *store;
    const char *run, *folder;
    int64_t attempt, world_size, node_count;
    dt_attempt_record record; /* of the attempt; its strings are the arena's */
    bool has_run;             /* its ranks were all ready once */
    json_t *plan;
    const dt_plan *task_plan; /* the same, read: where the task is not to train; else NULL */
    const char *checkpoints;  /* the plan's directory */
    const char *webhook;      /* with its references, "" none */
    dt_notifier *notifier;    /* of the process; borrowed */
    const char *secret;       /* of the run, hexadecimal */
    double grace_seconds, launcher_lost_seconds, hang_seconds;
    int64_t nodes_min, max_restarts;
    int64_t steps, epochs; /* the recipe's schedule */
    int64_t start_step;
    int64_t restarts; /* that led here without a new checkpoint; 0: a person started it */
    double begun_seconds;
    bool rows_lost; /* ranks were started, and the store knows of none: it was lost */
    const char
        *plan_problem; /* why there is no plan, and the run ends; NULL: there is (missing_plan.c) */

    dt_run_state state;
    dt_supervised_node *nodes;
    dt_collector *collector;        /* rows, and what the journals told */
    dt_checkpoint_fetcher *fetcher; /* checkpoints to be brought here */
    dt_reaper *reaper;              /* nodes that earlier attempts lost */
    dt_cleanup *cleanup;
    dt_verdict verdict;
    json_t *offers; /* rendezvous: name → [value or null, by rank] */

    dt_silence silence;
    dt_watchdog watchdog;
    bool slow_told;          /* of this silence */
    bool asked;              /* the ranks were, what they do */
    double asked_at_seconds; /* of the silence */
    json_t *diagnoses;       /* [by rank], their answers */

    dt_listener *listener;
    dt_control *controls;
    uv_timer_t answer_timer; /* of those that wait for the store (control.c) */
    uv_timer_t leave_timer;
    uv_timer_t cut_timer; /* until the cut is over */
    dt_cut cut;
    enum {
        DT_LEAVE_NOT_YET,
        DT_LEAVE_WAITS,
        DT_LEAVE_OVER
    } leave;           /* agents are let go, then it ends */
    bool progressed;   /* journals were stored a while after the start (parts.c) */
    bool restarted;    /* another attempt follows this one */
    dt_status failure; /* why the session ends before the run does */
    dt_error failure_error;
};

/* --- cut.c */
void dt_cut_open(dt_session *session);
void dt_cut_close(dt_session *session);
/* What was heard may be the step that it waits for. */
dt_status dt_cut_check(dt_session *session, dt_error *err);

/* --- session.c */
/* The session cannot continue (the store, the system): it ends, and another one begins. */
void dt_session_fail(dt_session *session, dt_status st, const dt_error *err);
/* The attempt as it is now, beside the store (attempt_record.h); and at once, on this thread: at the end, when
 * nothing more goes through the writer. */
dt_status dt_session_keep(dt_session *session, dt_error *err);
void dt_session_keep_now(dt_session *session);
/* The same, as it ended. */
void dt_session_keep_end(dt_session *session, dt_run_state state, int code, const char *reason);
/* An own event {event, message} that is stored as a failure or a finding of this session. */
dt_status dt_session_note(dt_session *session, const char *event, const char *message,
                          dt_error *err);
bool dt_node_has_started(const dt_supervised_node *node); /* a rank, in this attempt */
/* It has: a step was made, which all ranks make; or the rows that would tell were lost with the store. */
bool dt_node_may_have_started(const dt_supervised_node *node);
int64_t dt_session_count_lost(const dt_session *session);

static inline double dt_session_now(const dt_session *session)
{
    return session->clock.seconds; /* it moves only while input is read (poll_clock.h) */
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
/* Who is where, of a run whose plan cannot be read: from rows and folders. `why` is kept. */
dt_status dt_missing_plan_substitute(dt_plan *plan, dt_session *session, const char *why,
                                     dt_error *err);
/* The run goes to its end: the attempt is lost for that reason, and its nodes are asked. */
dt_status dt_missing_plan_stop(dt_session *session, dt_error *err);

/* --- parts.c, nodes.c */
dt_status dt_parts_open_collector(dt_session *session, dt_error *err);
/* Once rows are known. */
dt_status dt_parts_open(dt_session *session, dt_error *err);
void dt_parts_close(dt_session *session);
void dt_parts_free(dt_session *session); /* after the loop has run dry */
/* Nodes have folders of their own: checkpoints are brought here. */
bool dt_parts_fetch_checkpoints(const dt_session *session);
void dt_parts_fetch(dt_session *session, const dt_message *message);
/* The links, and where things lie on each: once plan and rows are known. */
dt_status dt_nodes_open(dt_session *session, dt_error *err);

/* --- watch.c */
dt_status dt_watch_open(dt_session *session, dt_error *err); /* once plan and rows are known */
/* An `alive`: what its ranks do, and how much time has passed there. May end the attempt. */
void dt_watch_alive(dt_supervised_node *node, const dt_message *message);
/* What a journal's event says about steps and phases. */
void dt_watch_event(dt_session *session, const dt_message *message);

/* --- recall.c */
dt_status dt_recall_rows(dt_session *session, dt_error *err);
dt_status dt_recall_events(dt_session *session, dt_error *err);

/* --- next_attempt.c */
typedef struct dt_next_attempt {
    int64_t attempt, restarts, start_step;
    const char *checkpoint; /* "": from the beginning */
    int64_t steps_total; /* as the checkpoint knows; 0: it is another attempt's, or says nothing */
    int64_t nodes_lost;  /* and left out */
} dt_next_attempt;

/* The checkpoint that it would resume from. */
dt_status dt_next_attempt_find(dt_next_attempt *next, dt_session *session, dt_error *err);
/* This attempt has ended so, and the next one is queued. */
dt_status dt_next_attempt_add(dt_session *session, const dt_next_attempt *next, int code,
                              const char *reason, dt_error *err);

/* --- outcome.c */
/* Once nothing more can come: another attempt will follow. */
bool dt_restart_is_due(dt_session *session);
/* The end of the attempt goes into the store, and where it is worth it the next attempt with it;
 * *again says so. */
dt_status dt_restart_or_end(bool *again, dt_session *session, dt_error *err);

/* --- rendezvous.c */
void dt_rendezvous_offer(dt_session *session, const dt_message *message);

/* --- control.c */
void dt_control_take(void *session, int connection);
void dt_control_stored(dt_session *session); /* who asked for what is now stored is answered */
void dt_control_close_all(dt_session *session);

#endif
