/* supervisor_int: what the files of the supervisor share.
 *
 *   supervise.c   lock, load, loop, end                 state.c       the [state][event] table
 *   load.c        everything known, from plan and store  actions.c    what the states do
 *   node.c        the connection to one agent            follow.c     journal → store
 *   rendezvous.c  everyone's values                      rank_log.c   runs/ID/logs/rank-N.log
 *   control.c     runs/ID/control.sock                   verdict.c    how it ended, and why
 *   start.c, ask.c, path.c   what commands call
 *
 * The process may be killed at any moment: it knows nothing that is not in the store, the plan or
 * the agents' journals. An error of the store ends the session (supervise.c) and begins it anew.
 */
#ifndef DT_SUPERVISOR_INT_H
#define DT_SUPERVISOR_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/arena.h"
#include "base/json.h"
#include "runner/channel/listener.h"
#include "runner/channel/stream.h"
#include "runner/supervisor/message.h"
#include "runner/supervisor/verdict.h"
#include "runner/transport/transport.h"
#include "store/store.h"

typedef struct dt_session dt_session;
typedef struct dt_connection dt_connection;
typedef struct dt_control dt_control;

typedef struct dt_supervised_rank {
    dt_rank row;
    int log; /* descriptor, -1: not open yet */
    bool changed, ready, exited;
} dt_supervised_rank;

typedef struct dt_supervised_node {
    dt_session *session;
    dt_node row;
    bool changed;
    dt_transport_target target;
    const dt_transport *transport;

    dt_connection *connection; /* NULL: none */
    uv_timer_t retry;          /* until the next try; while connected: is it silent? */
    bool retry_open;
    int tries;            /* since it was last heard */
    double heard_seconds; /* the last line, or the beginning */
    bool attached;        /* said hello on this connection */
    bool idle;            /* ... and that no rank was started */
    bool released, given_up;
    char problem[512]; /* the last thing that went wrong on the way to it */
} dt_supervised_node;

struct dt_session {
    uv_loop_t loop;
    dt_arena arena;
    dt_store *store;
    const char *run, *folder;
    int64_t attempt, world_size, node_count;
    json_t *plan;
    const char *checkpoints; /* the plan's directory */
    double grace_seconds;
    dt_run_state state;
    dt_supervised_rank *ranks;
    dt_supervised_node *nodes;
    dt_verdict verdict;
    bool stop_now;
    json_t *offers; /* rendezvous: name → [value or null, by rank] */

    bool in_transaction;
    bool progressed; /* the values below are newer than the store's */
    int64_t step;
    double loss, valid_loss, tokens_per_second;

    dt_listener *listener;
    dt_control *controls;
    uv_timer_t leave;
    bool leaving;
    dt_status trouble; /* why the session ends before the run does */
    dt_error trouble_error;
};

/* --- supervise.c */
/* The session cannot go on (the store, the system): it ends, and another one begins. */
void dt_session_trouble(dt_session *session, dt_status st, const dt_error *err);
void dt_session_leave(dt_session *session); /* the run has ended: bye, and out */

/* --- load.c */
dt_status dt_session_load(dt_session *session, const char *run, dt_error *err);
void dt_session_unload(dt_session *session);

/* --- node.c */
void dt_node_connect(dt_supervised_node *node);
void dt_node_disconnect(dt_supervised_node *node);
void dt_node_reconnect(dt_supervised_node *node, const char *why);
void dt_node_send(dt_supervised_node *node, json_t *command); /* takes; nothing if not connected */

/* --- follow.c */
dt_status dt_follow_event(dt_supervised_node *node, const dt_message *message, dt_error *err);
/* What was followed goes into the store; then the agent is told, and the states move. */
dt_status dt_follow_commit(dt_session *session, dt_error *err);
void dt_follow_rollback(dt_session *session);
/* What an event means for the memory: as it comes, and again when the store is loaded. */
void dt_follow_remember(dt_supervised_node *node, const dt_message *message);
/* An event of the supervisor's own, in the open or a new transaction. Takes `event`. */
dt_status dt_follow_own_event(dt_session *session, json_t *event, dt_error *err);

/* --- rank_log.c */
dt_status dt_rank_log_open(dt_session *session, dt_supervised_rank *rank, dt_error *err);
dt_status dt_rank_log_add(dt_session *session, dt_supervised_rank *rank, int64_t time_ms,
                          const char *text, dt_error *err);

/* --- rendezvous.c */
void dt_rendezvous_offer(dt_session *session, const dt_message *message);

/* --- control.c */
void dt_control_take(void *session, int connection);
void dt_control_close_all(dt_session *session);

#endif
