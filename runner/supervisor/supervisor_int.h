/* supervisor_int: what the files of the supervisor share.
 *
 *   connection/   the way to each node                protocol/    a line of an agent
 *   policy/       what is decided, without doing it
 *
 *   supervise.c   lock, load, loop, end                  state.c      the [state][event] table
 *   load.c        everything known, from plan and store  actions.c    what the states do
 *   copies.c      plan.json and place.json, twice        salvage.c    a run without a plan is ended
 *   nodes.c       what the links tell of                 rendezvous.c everyone's values
 *   follow.c      journal → store                        rank_log.c   runs/ID/logs/rank-N.log
 *   changes.c     what goes into the store               store_writer.c  its thread
 *   gap.c         events that were lost                  gather.c     checkpoints come here
 *   hang.c        ranks that make no step                control.c    runs/ID/control.sock
 *   restart.c     the attempt after this one             notify.c     a webhook is told
 *   sweep.c       nodes that earlier attempts lost       tidy.c       what an ended run left there
 *   secret.c      what the ranks of a run share          start.c, ask.c, path.c   commands call
 *   launch_env.c  the launch's environment, kept for them
 *   kept.c        what the store says of an attempt, in its folder
 *   rebuild.c     rows from the run's folder             adopt.c      ... and its checkpoints
 *   mend.c        ... by whatever command meets the run
 *
 * A session is one attempt. Where a failed one is followed by another, the session ends and the
 * next one loads it: there is no state that lives longer.
 *
 * The process may be killed at any moment: it knows nothing that is not in the store, the plan or
 * the agents' journals. A store that is locked or full is waited for (store_writer.h); any other
 * error of it ends the session (supervise.c) and begins it anew.
 */
#ifndef DT_SUPERVISOR_INT_H
#define DT_SUPERVISOR_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/arena.h"
#include "base/json.h"
#include "recipes/plan.h"
#include "runner/channel/listener.h"
#include "runner/channel/poll_clock.h"
#include "runner/channel/stream.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/connection/node_link.h"
#include "runner/supervisor/kept.h"
#include "runner/supervisor/notify.h"
#include "runner/supervisor/policy/silence.h"
#include "runner/supervisor/policy/straggler.h"
#include "runner/supervisor/policy/verdict.h"
#include "runner/supervisor/policy/watchdog.h"
#include "runner/supervisor/protocol/message.h"
#include "runner/supervisor/store_writer.h"
#include "runner/supervisor/supervisor.h"
#include "store/store.h"

typedef struct dt_session dt_session;
typedef struct dt_control dt_control;
typedef struct dt_gather dt_gather;
typedef struct dt_sweep dt_sweep;
typedef struct dt_tidy dt_tidy;
typedef struct dt_ack dt_ack;

/* Once the loop turns, the store's writer has it (store_writer.h). */
typedef struct dt_rank_log {
    int fd;                      /* -1: not open yet */
    int64_t bytes, stored_bytes; /* written; and in the store */
    bool unsynced;               /* lines came since it was last synced to the disk */
} dt_rank_log;

typedef struct dt_supervised_rank {
    dt_rank row; /* but for its log_bytes */
    dt_rank_log log;
    bool changed, ready, exited;
} dt_supervised_rank;

typedef struct dt_supervised_node {
    dt_session *session;
    dt_node row;
    bool changed;
    const char *here;    /* attempt-N/node-K on this machine */
    dt_node_link *link;  /* the way to it, and how far it is */
    bool released;       /* its journal says that nothing is left */
    bool rebooted;       /* since its ranks were started */
    int64_t step;        /* the newest that a rank of it told of, */
    double step_seconds; /* ... and when; 0: none yet */
    int64_t beat_ms;     /* its monotonic clock at its last `alive`; 0: none on this connection */
} dt_supervised_node;

struct dt_session {
    uv_loop_t loop;
    dt_poll_clock clock;
    dt_arena arena;
    dt_store *store;
    const char *run, *folder;
    int64_t attempt, world_size, node_count;
    dt_kept kept; /* of the attempt; its strings are the arena's */
    json_t *plan;
    const char *checkpoints; /* the plan's directory */
    const char *webhook;     /* with its references, "" none */
    dt_notifier *notifier;   /* of the process; borrowed */
    const char *secret;      /* of the run, hexadecimal (secret.c) */
    double grace_seconds, launcher_lost_seconds, hang_seconds;
    int64_t nodes_min, max_restarts;
    int64_t steps, epochs; /* the recipe's schedule */
    int64_t steps_total;   /* as the engine said in this attempt; 0: not yet */
    int64_t start_step;
    int64_t restarts; /* that led here without a new checkpoint; 0: a person started it */
    double begun_seconds;
    const char *salvaged; /* why there is no plan, and the run ends; NULL: there is (salvage.c) */
    dt_run_state state;
    dt_supervised_rank *ranks;
    dt_supervised_node *nodes;
    dt_verdict verdict;
    bool stop_now;
    json_t *offers; /* rendezvous: name → [value or null, by rank] */

    dt_gather *gathers;      /* checkpoints to be brought here, the oldest first */
    bool gathering;          /* ... which a thread does now */
    uv_timer_t gather_again; /* after a failure */

    dt_sweep *sweeps; /* nodes that earlier attempts lost */
    int64_t sweep_count;
    enum { DT_SWEEP_ON, DT_SWEEP_LAST, DT_SWEEP_OVER } sweep_end;
    uv_timer_t sweep_timer;

    dt_tidy *tidy; /* NULL: the run has not come so far */

    dt_straggler straggler;
    dt_silence silence;
    dt_watchdog watchdog;
    bool slow_told;          /* of this silence */
    bool asked;              /* the ranks were, what they do */
    double asked_at_seconds; /* of the silence */
    json_t *diagnoses;       /* [by rank], their answers */

    bool gaps; /* events of a journal were lost (gap.c) */

    dt_store_writer *writer;   /* NULL: not yet, or not any more */
    dt_ack *acks, **acks_last; /* to be sent once they are on the disk */
    bool paused;               /* reading the journals: too much waits to be stored */
    bool in_transaction;       /* of `store`: without a writer */
    bool progressed;           /* the values below are newer than the store's */
    int64_t step;
    double loss, valid_loss, tokens_per_second;

    dt_listener *listener;
    dt_control *controls;
    uv_timer_t answer_timer; /* of those that wait for the store (control.c) */
    uv_timer_t leave;
    bool leaving;      /* all is known; the agents are let go, then it is concluded */
    bool restarted;    /* another attempt follows this one */
    dt_status trouble; /* why the session ends before the run does */
    dt_error trouble_error;
};

/* --- supervise.c */
/* The session cannot go on (the store, the system): it ends, and another one begins. */
void dt_session_trouble(dt_session *session, dt_status st, const dt_error *err);

/* --- load.c */
dt_status dt_session_load(dt_session *session, const char *run, dt_error *err);
void dt_session_unload(dt_session *session);

/* --- salvage.c */
/* Who is where, of a run whose plan cannot be read: from rows and folders. `why` is kept. */
dt_status dt_salvage_plan(dt_plan *plan, dt_session *session, const char *why, dt_error *err);
/* The run goes to its end: the attempt is lost for that reason, and its nodes are asked. */
dt_status dt_salvage_begin(dt_session *session, dt_error *err);

/* --- nodes.c */
/* The links, and where things lie on each: once plan and rows are known. */
dt_status dt_nodes_open(dt_session *session, dt_error *err);
bool dt_node_has_started(const dt_supervised_node *node); /* a rank, in this attempt */
int64_t dt_nodes_count_lost(const dt_session *session);
/* The run has failed, and no attempt follows: where ranks may still be goes into the verdict. */
void dt_nodes_tell_lost(dt_session *session);

static inline bool dt_node_is_lost(const dt_supervised_node *node)
{
    return dt_node_link_phase(node->link) == DT_NODE_LOST;
}

/* --- hang.c */
dt_status dt_hang_load(dt_session *session, dt_error *err); /* once plan and rows are known */
/* An `alive`: what its ranks do, and how much time has passed there. May end the attempt. */
void dt_hang_hear(dt_supervised_node *node, const dt_message *message);
/* What a journal's event says about steps and phases. */
void dt_hang_follow(dt_session *session, const dt_message *message);

/* --- secret.c */
/* 32 random bytes, hexadecimal, in FOLDER/secret (0600); made where missing. */
dt_status dt_run_secret(const char **out, const char *folder, dt_arena *arena, dt_error *err);

/* --- restart.c */
/* Once nothing more can come: another attempt will follow. */
bool dt_restart_is_due(dt_session *session);
/* The end of the attempt goes into the store, and where it is worth it the next attempt with it;
 * *again says so. */
dt_status dt_restart_or_end(bool *again, dt_session *session, dt_error *err);

/* The clock of all silence: it moves only while input is read (channel/poll_clock.h). */
static inline double dt_session_now(const dt_session *session)
{
    return session->clock.seconds;
}

/* --- gap.c */
/* Before a numbered event is followed: what is missing in front of it is noted. */
dt_status dt_gap_follow(dt_supervised_node *node, const dt_message *message, dt_error *err);
/* A line that cannot be understood, and why: noted and left out. False where it has no number. */
bool dt_gap_skip(dt_supervised_node *node, const char *text, size_t length, const char *why);
/* All is told: where that does not say how the ranks ended, the attempt is lost. */
dt_status dt_gap_settle(dt_session *session, dt_error *err);

/* --- follow.c */
dt_status dt_follow_event(dt_supervised_node *node, dt_message *message, dt_error *err);
/* What was followed is on its way into the store; once it is on the disk the agents are told. */
dt_status dt_follow_commit(dt_session *session, dt_error *err);
/* Opens the session's writer. */
dt_status dt_follow_begin(dt_session *session, dt_error *err);
void dt_follow_end(dt_session *session);
void dt_follow_rollback(dt_session *session);
/* The store's file was removed or replaced: what `old` has of the run goes to the one that is there now.
 * On any thread that has `old`. */
dt_status dt_follow_move(const dt_session *session, dt_store *old, dt_error *err);
/* What an event means for the memory: as it comes, and again when the store is loaded. */
void dt_follow_remember(dt_supervised_node *node, const dt_message *message);
/* An event of the supervisor's own, in the open or a new transaction. Takes `event`. */
dt_status dt_follow_own_event(dt_session *session, json_t *event, dt_error *err);

/* The row of a checkpoint that is whole here, in the open transaction. */
dt_status dt_follow_checkpoint(dt_session *session, const dt_message *message, dt_error *err);

/* --- gather.c */
bool dt_gather_is_needed(const dt_session *session); /* nodes have folders of their own */
void dt_gather_add(dt_session *session, const dt_message *message);
bool dt_gather_is_over(const dt_session *session);
void dt_gather_cancel(dt_session *session);
void dt_gather_release(dt_session *session); /* after the loop has run dry */

/* --- sweep.c */
dt_status dt_sweep_load(dt_session *session, dt_error *err);
void dt_sweep_begin(dt_session *session);   /* from now on */
bool dt_sweep_is_over(dt_session *session); /* the run ends: a last try, which comes back here */
/* What could not be asked goes into the verdict. */
dt_status dt_sweep_tell(dt_session *session, dt_error *err);
void dt_sweep_cancel(dt_session *session);
void dt_sweep_release(dt_session *session); /* after the loop has run dry */

/* --- tidy.c */
/* The run ends, and no attempt follows: begins, and comes back here when it is done. */
bool dt_tidy_is_over(dt_session *session);
void dt_tidy_cancel(dt_session *session);  /* soon */
void dt_tidy_release(dt_session *session); /* after the loop has run dry */

/* --- rank_log.c */
dt_status dt_rank_log_open(dt_rank_log *log, const char *folder, int64_t rank, dt_error *err);
dt_status dt_rank_log_write(dt_rank_log *log, const char *folder, int64_t rank, const char *text,
                            size_t length, dt_error *err);
void dt_rank_log_settle(dt_rank_log *log, bool committed); /* the transaction that it is part of */
dt_status dt_rank_log_sync(dt_rank_log *log, dt_error *err); /* to the disk */
void dt_rank_log_close(dt_rank_log *log);
dt_status dt_rank_log_add(dt_session *session, dt_supervised_rank *rank, int64_t time_ms,
                          const char *text, dt_error *err);

/* --- rendezvous.c */
void dt_rendezvous_offer(dt_session *session, const dt_message *message);

/* --- control.c */
void dt_control_take(void *session, int connection);
void dt_control_stored(dt_session *session); /* who asked for what is now stored is answered */
void dt_control_close_all(dt_session *session);

#endif
