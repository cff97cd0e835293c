/* node_link: the connection to one node, and commands that run there beside it.
 *
 * Connections are made again until the node is given up: `dtrun-agent connect` is started after a back-off,
 * or at once after a silence (policy/liveness.h). If the agent died, the command starts it again; the new
 * agent ends the ranks that it finds and reports that. An agent that has released its node gets `bye` when
 * everything is stored, and is not started again.
 *
 *                 begin               prepared               hello              released
 *      NEW ──────────────► PREPARING ──────────► CONNECTING ───────► ATTACHED ──────────► RELEASED
 *       │                    ▲   │                 ▲    │               │                  ▲   │
 *       │               tick │   │ failed     tick │    │ cut           │ cut        ended │   │ stored
 *       │                    │   ▼                 │    ▼               │                  │   ▼
 *       │                    AWAY                 BETWEEN ◄─────────────┘   ENDING ────────┘ LEAVING
 *       │                                                                                      │ cut
 *       └── begin, its place is known: CONNECTING                                              ▼
 *                                                                                             GONE
 *   NEW       -> PREPARING   begin                       [begin]
 *             -> CONNECTING  begin; it was prepared      [begin]
 *             -> UNUSED      stop; nothing is there      [stop_unplaced]
 *             -> LEAVING     released, in the store      [remember_release]
 *   PREPARING -> CONNECTING  prepared                    [use_preparation]
 *             -> AWAY        failed, may be temporary    [use_preparation]
 *             -> LOST        failed for good             [give_up]
 *             -> UNUSED      stop; nothing is there      [stop_unplaced]
 *   AWAY      -> PREPARING   tick                        [prepare]
 *             -> UNUSED      stop                        [stop_unplaced]
 *   CONNECTING-> ATTACHED    hello                       [attach]
 *             -> BETWEEN     cut, silent, refused        [cut]
 *             -> ENDING      refused too often           [end_there]
 *             -> LOST        silent for too long         [give_up]
 *   ATTACHED  -> BETWEEN, ENDING, LOST                   as for CONNECTING
 *             -> RELEASED    its journal says so         [release]
 *   BETWEEN   -> CONNECTING  tick                        [connect_again]
 *             -> LOST        silent for too long         [give_up]
 *   ENDING    -> RELEASED    `dtrun-agent end` succeeds  [ended]
 *             -> LOST        it failed three times       [give_up]
 *   RELEASED  -> LEAVING     everything is stored        [send_bye]
 *             -> GONE        cut, or no connection       [leave]
 *   LEAVING   -> GONE        cut                         [leave]
 *
 * UNUSED, LOST and GONE are final. A node whose place was lost (place.json is damaged) is prepared again in
 * any case, since ranks may be running there.
 *
 * Ownership  callbacks run only on the loop's thread, and never after close. Call free when the loop has no
 *            more handles
 * Threads    call from the loop's thread
 */
#ifndef DT_RUNNER_SUPERVISOR_CONNECTION_NODE_LINK_H
#define DT_RUNNER_SUPERVISOR_CONNECTION_NODE_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/json.h"
#include "runner/channel/poll_clock.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/policy/liveness.h"
#include "runner/supervisor/protocol/message.h"

/* node_process: runs a command on a node and reports its exit code. Its streams are /dev/null.
 *
 * Ownership  frees itself after `exited`; abandon kills the command, cancels the callback and frees the
 *            process once it is reaped
 * Threads    call from the loop's thread
 */

typedef struct dt_node_process dt_node_process;

/* number: the signal that killed it, 0: none. The process pointer is invalid from here on. */
typedef void dt_node_exited_fn(void *context, int64_t code, int number);

/* `exited` is called as usual; accepts NULL */
void dt_node_process_kill(dt_node_process *process);
void dt_node_process_abandon(dt_node_process *process); /* accepts NULL */

/* Runs `dtrun-agent end FOLDER` on the node, over a connection of its own. */
dt_node_process *dt_node_process_end_agent(uv_loop_t *loop, const char *node, const char *agent,
                                           const char *folder, dt_node_exited_fn *exited,
                                           void *context);

typedef enum dt_node_phase {
    DT_NODE_NEW,
    DT_NODE_PREPARING,  /* a thread prepares it */
    DT_NODE_AWAY,       /* the preparation failed and is tried again */
    DT_NODE_CONNECTING, /* waiting for the agent's hello */
    DT_NODE_ATTACHED,
    DT_NODE_BETWEEN,  /* waiting for the next connection */
    DT_NODE_ENDING,   /* `dtrun-agent end` ends what runs there, without the agent */
    DT_NODE_RELEASED, /* nothing is left there */
    DT_NODE_LEAVING,  /* that is stored: the agent is told to leave */
    DT_NODE_GONE,     /* the agent has left */
    DT_NODE_UNUSED,   /* nothing was or will be started there */
    DT_NODE_LOST,     /* the node was given up */
    DT_NODE_PHASE_COUNT
} dt_node_phase;

/* What a cell of a [phase][event] or [state][event] table says. No cell is MISSING. */
typedef enum dt_reaction {
    DT_REACTION_MISSING,
    DT_REACTION_HANDLED,
    DT_REACTION_IGNORED, /* the event is expected, and there is nothing to do */
    /* The event is not expected: it is logged, with DT_IMPOSSIBLE, and ignored. */
    DT_REACTION_IMPOSSIBLE
} dt_reaction;

#define DT_IMPOSSIBLE "should be impossible"

typedef struct dt_node_link dt_node_link;

/* Callbacks to the owner of the run; all MUST be set. node: index of the node. */
typedef struct dt_node_calls {
    /* Returns true if the session is ending: nothing more is done. */
    bool (*is_over)(void *context);
    /* Returns the number of the next event that is needed from the journal. */
    int64_t (*next_event)(void *context, int64_t node);
    /* Fills in the facts that the run knows: started, stopping, waits, lease, peers, peer_step,
     * step_gap. */
    void (*judge)(void *context, int64_t node, dt_liveness_facts *facts);
    /* Returns true if preparing the node is worth another try. */
    bool (*may_wait)(void *context, int64_t node, dt_status failed);
    /* The node is prepared: must call dt_node_link_set_place with its place.json. */
    dt_status (*prepared)(void *context, int64_t node, dt_error *err);

    /* progress of the preparation */
    void (*preparing)(void *context, int64_t node, const char *text);
    void (*attached)(void *context, int64_t node, const char *boot_id);
    /* times are in this machine's clock */
    void (*event)(void *context, int64_t node, dt_message *message);
    /* A line that cannot be parsed, and why. Returns false if it has no event number. */
    bool (*damaged)(void *context, int64_t node, const char *text, size_t length, const char *why);
    void (*alive)(void *context, int64_t node, const dt_message *message);
    void (*rendezvous)(void *context, const dt_message *message);
    /* a command was refused; a retry would be too */
    void (*refused)(void *context, int64_t node, const char *why);
    /* The agent belongs to another version of dtrun and is left alone. */
    void (*other_build)(void *context, int64_t node, const char *why);
    void (*batch)(void *context); /* all lines of the last read were delivered */

    /* not reachable, until attached */
    void (*unreachable)(void *context, int64_t node, const char *text);
    /* ended without its agent: RELEASED */
    void (*ended)(void *context, int64_t node, const char *why);
    void (*lost)(void *context, int64_t node); /* LOST */
    void (*settled)(void *context);            /* the phase changed; others may wait for that */
} dt_node_calls;

/* Parameters; all borrowed, and must outlive the link. */
typedef struct dt_node_setup {
    uv_loop_t *loop;
    const dt_poll_clock *clock;
    const char *run, *name;
    int64_t attempt, index, node_count, world_size;
    const char *here;        /* attempt-N/node-K on this machine */
    const char *checkpoints; /* the plan's directory */
    const json_t *plan;
} dt_node_setup;

dt_node_link *dt_node_link_open(const dt_node_setup *setup, const dt_node_calls *calls,
                                void *context);
void dt_node_link_close(dt_node_link *link); /* accepts NULL */
void dt_node_link_free(dt_node_link *link);  /* the same */

/* --- restored state */
/* Takes the reference place->paths; the rest is borrowed. */
void dt_node_link_set_place(dt_node_link *link, const dt_node_layout *place);
void dt_node_link_lose_place(dt_node_link *link);
void dt_node_link_remember_release(dt_node_link *link);

/* --- commands */
void dt_node_link_begin(dt_node_link *link);
/* Stops the ranks of the node. person: a person requested it, which the journal records too. */
void dt_node_link_stop(dt_node_link *link, double grace_seconds, bool person);
/* takes `command`; dropped if not connected */
void dt_node_link_send(dt_node_link *link, json_t *command);
/* stop or resume reading its journal */
void dt_node_link_pause(dt_node_link *link, bool pause);
/* Suspends its connection, and connections opened meanwhile, in both directions; for tests. */
void dt_node_link_freeze(dt_node_link *link, bool freeze);
void dt_node_link_release(dt_node_link *link); /* its journal reports that nothing is left */
void dt_node_link_stored(dt_node_link *link);  /* that report is stored */
void dt_node_link_give_up(dt_node_link *link, const char *why);

/* --- queries */
dt_node_phase dt_node_link_phase(const dt_node_link *link);
bool dt_node_link_is_attached(const dt_node_link *link); /* its agent accepts commands */
bool dt_node_link_has_ended(const dt_node_link *link);   /* RELEASED or beyond, UNUSED, LOST */
bool dt_node_link_is_away(const dt_node_link *link);     /* GONE, UNUSED or LOST */
/* a preparation is running, in any phase */
bool dt_node_link_is_preparing(const dt_node_link *link);
/* its agent reported that no rank was started */
bool dt_node_link_is_idle(const dt_node_link *link);
/* Returns the next number of its journal at the time of its hello. */
int64_t dt_node_link_hello_sequence(const dt_node_link *link);
bool dt_node_link_is_preempted(const dt_node_link *link);
/* LOST, and lost for later attempts too */
bool dt_node_link_is_unrecoverable(const dt_node_link *link);
const dt_node_layout *dt_node_link_place(const dt_node_link *link); /* NULL: not known */
double dt_node_link_heard_seconds(const dt_node_link *link);
/* last problem of the connection, or "" */
const char *dt_node_link_problem(const dt_node_link *link);

#endif
