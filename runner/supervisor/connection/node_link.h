/* node_link: the way to one node, from its preparation until its agent has taken its leave.
 *
 * Connections are made again until the node is given up: `dtrun-agent connect` is started after a
 * back-off, or at once where one is silent (policy/liveness.h). An agent that was lost is started
 * anew by it, ends what it finds, and says so. One that has released its node is told that all is
 * stored, and is not started again.
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
 *             -> AWAY        failed, and may pass        [use_preparation]
 *             -> LOST        failed for good             [give_up]
 *             -> UNUSED      stop; nothing is there      [stop_unplaced]
 *   AWAY      -> PREPARING   tick                        [prepare]
 *             -> UNUSED      stop                        [stop_unplaced]
 *   CONNECTING-> ATTACHED    hello                       [attach]
 *             -> BETWEEN     cut, silent, refused        [cut]
 *             -> ENDING      refused once too often      [end_there]
 *             -> LOST        silent for too long         [give_up]
 *   ATTACHED  -> BETWEEN, ENDING, LOST                   the same
 *             -> RELEASED    its journal says so         [release]
 *   BETWEEN   -> CONNECTING  tick                        [connect_again]
 *             -> LOST        silent for too long         [give_up]
 *   ENDING    -> RELEASED    `dtrun-agent end` is done   [ended]
 *             -> LOST        it failed three times       [give_up]
 *   RELEASED  -> LEAVING     all of it is stored         [say_bye]
 *             -> GONE        cut, or there was none      [leave]
 *   LEAVING   -> GONE        cut                         [leave]
 *
 * UNUSED, LOST and GONE are final. A place that was lost (place.json is damaged) is prepared again
 * whatever is asked, since ranks may be there.
 *
 * Ownership  calls are made from the loop alone; none after close. free once the loop has run dry
 * Threads    the loop's
 */
#ifndef DT_CONNECTION_NODE_LINK_H
#define DT_CONNECTION_NODE_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/json.h"
#include "runner/channel/poll_clock.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/policy/liveness.h"
#include "runner/supervisor/protocol/message.h"

typedef enum dt_node_phase {
    DT_NODE_NEW,
    DT_NODE_PREPARING,  /* a thread makes it ready */
    DT_NODE_AWAY,       /* that failed, and is tried again */
    DT_NODE_CONNECTING, /* the agent has not said hello yet */
    DT_NODE_ATTACHED,
    DT_NODE_BETWEEN,  /* two connections */
    DT_NODE_ENDING,   /* what runs there is being ended, past its agent */
    DT_NODE_RELEASED, /* nothing is left there, */
    DT_NODE_LEAVING,  /* ... which is in the store: the agent is told to leave */
    DT_NODE_GONE,     /* ... and has left */
    DT_NODE_UNUSED,   /* nothing was begun there, and nothing will be */
    DT_NODE_LOST,     /* nothing more is expected of it */
    DT_NODE_PHASE_COUNT
} dt_node_phase;

typedef struct dt_node_link dt_node_link;

/* What happens to it, to whoever has the run; all MUST be there. node: its index. */
typedef struct dt_node_calls {
    /* The session ends: nothing more is done. */
    bool (*is_over)(void *context);
    /* The number of the journal's next event that is wanted. */
    int64_t (*next_event)(void *context, int64_t node);
    /* What the run knows, of the facts that silence is judged by: started, stopping, waits, lease,
     * peers, peer_step, step_gap. */
    void (*judge)(void *context, int64_t node, dt_liveness_facts *facts);
    /* Whether a node that could not be made ready is worth another try. */
    bool (*may_wait)(void *context, int64_t node, dt_status failed);
    /* It is ready: dt_node_link_set_place, from place.json. */
    dt_status (*prepared)(void *context, int64_t node, dt_error *err);

    void (*preparing)(void *context, int64_t node, const char *text); /* how far it is */
    void (*attached)(void *context, int64_t node, const char *boot_id);
    void (*event)(void *context, int64_t node, dt_message *message); /* by our clock */
    /* A line that cannot be understood, and why. False: it is of no event. */
    bool (*damaged)(void *context, int64_t node, const char *text, size_t length, const char *why);
    void (*alive)(void *context, int64_t node, const dt_message *message);
    void (*rendezvous)(void *context, const dt_message *message);
    void (*refused)(void *context, int64_t node, const char *why); /* a command, for good */
    /* The agent belongs to another build, and is left alone. */
    void (*other_build)(void *context, int64_t node, const char *why);
    void (*batch)(void *context); /* of what was just read, all has been told */

    void (*unreachable)(void *context, int64_t node, const char *text); /* until it is attached */
    void (*ended)(void *context, int64_t node, const char *why); /* past its agent: RELEASED */
    void (*lost)(void *context, int64_t node);                   /* LOST */
    void (*settled)(void *context); /* another phase that others may have waited for */
} dt_node_calls;

/* What it must know; all of it borrowed, and longer-lived. */
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

/* --- what was known before */
/* Takes the reference of place->paths; the rest is borrowed. */
void dt_node_link_set_place(dt_node_link *link, const dt_node_layout *place);
void dt_node_link_lose_place(dt_node_link *link);
void dt_node_link_remember_release(dt_node_link *link);

/* --- what is asked of it */
void dt_node_link_begin(dt_node_link *link);
/* Its ranks. person: a person asked for it, which its journal then remembers too. */
void dt_node_link_stop(dt_node_link *link, double grace_seconds, bool person);
void dt_node_link_send(dt_node_link *link, json_t *command); /* takes; nothing if not connected */
void dt_node_link_pause(dt_node_link *link, bool pause);     /* reading its journal */
/* Its connection, and those that are opened meanwhile, carry nothing either way; for tests. */
void dt_node_link_freeze(dt_node_link *link, bool freeze);
void dt_node_link_release(dt_node_link *link); /* its journal says that nothing is left */
void dt_node_link_stored(dt_node_link *link);  /* ... and so does the store */
void dt_node_link_give_up(dt_node_link *link, const char *why);

/* --- what it is like */
dt_node_phase dt_node_link_phase(const dt_node_link *link);
bool dt_node_link_is_attached(const dt_node_link *link);  /* its agent reads what is sent */
bool dt_node_link_has_ended(const dt_node_link *link);    /* RELEASED or beyond, UNUSED, LOST */
bool dt_node_link_is_away(const dt_node_link *link);      /* GONE, UNUSED or LOST */
bool dt_node_link_is_preparing(const dt_node_link *link); /* a thread is at work, in any phase */
bool dt_node_link_is_idle(const dt_node_link *link); /* its agent said that no rank was started */
/* The journal number that its agent was to use next when it said hello. */
int64_t dt_node_link_hello_sequence(const dt_node_link *link);
bool dt_node_link_is_preempted(const dt_node_link *link);
bool dt_node_link_is_unrecoverable(const dt_node_link *link); /* LOST, and for later attempts too */
const dt_node_layout *dt_node_link_place(const dt_node_link *link); /* NULL: not known */
double dt_node_link_heard_seconds(const dt_node_link *link);
const char *dt_node_link_problem(const dt_node_link *link); /* the last on the way to it, or "" */

#endif
