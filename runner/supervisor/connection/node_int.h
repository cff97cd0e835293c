/* node_int: declares what the files of a node's link share.
 *
 *   node_life.c   open, commands, close             receive.c       handles the agent's messages
 *   node_phase.c  the [phase][event] table          silence.c       judges silence
 *   bridge.c      lines to and from the agent       preparation.c   prepares the node on a thread
 *   probe.c       checks whether commands run there node_process.c  runs a command there
 *   clock_offset.c  offset of the node's clock      node_link.c     state queries
 */
#ifndef DT_CONNECTION_NODE_INT_H
#define DT_CONNECTION_NODE_INT_H

#include "runner/supervisor/connection/bridge.h"
#include "runner/supervisor/connection/clock_offset.h"
#include "runner/supervisor/connection/node_link.h"
#include "runner/supervisor/connection/node_process.h"
#include "runner/supervisor/connection/preparation.h"
#include "runner/supervisor/connection/probe.h"
#include "runner/supervisor/policy/node_loss.h"

typedef enum dt_node_event {
    DT_NODE_EVENT_BEGIN,
    DT_NODE_EVENT_PREPARED, /* the preparation has ended: prepared_status, problem */
    DT_NODE_EVENT_HELLO,
    DT_NODE_EVENT_CUT,   /* the connection is broken: problem */
    DT_NODE_EVENT_SPENT, /* too many refusals: problem */
    DT_NODE_EVENT_TICK,  /* timer */
    DT_NODE_EVENT_STOP,  /* grace_seconds */
    DT_NODE_EVENT_RELEASE,
    DT_NODE_EVENT_STORED,
    DT_NODE_EVENT_ENDED,   /* `dtrun-agent end` succeeded */
    DT_NODE_EVENT_GIVE_UP, /* problem */
    DT_NODE_EVENT_COUNT
} dt_node_event;

struct dt_node_link {
    dt_node_setup setup;
    dt_node_calls calls;
    void *context;
    dt_bridge_calls words; /* callbacks of the bridge (receive.c) */

    dt_node_phase phase;
    dt_node_layout place; /* valid if `placed` */
    bool placed;
    bool place_lost;      /* it was placed, but the paths are no longer known */
    const char *name;     /* from the setup or from its place */
    char problem[512];    /* last problem with the connection */
    double grace_seconds; /* grace period of the last stop */
    bool person;          /* the last stop was requested by a person */
    dt_status prepared_status;

    dt_preparation *preparation; /* NULL: not preparing */
    dt_bridge *bridge;           /* NULL: none */
    dt_node_process *end;        /* `dtrun-agent end`; NULL: none */
    dt_node_prober *prober;
    uv_timer_t timer; /* delay of the next try; while connected: check for silence */

    int tries;                /* connections since the last line */
    int end_tries;            /* tries of `end` */
    double connected_seconds; /* start of the connection */
    double heard_seconds;     /* last line, or the time when one was first expected */
    double probed_seconds;    /* start of the last probe */
    double reached_seconds;   /* since then every probe ran a command; infinite: the last did not */
    double command_seconds, answered_seconds, unknown_seconds; /* results of probes (liveness.h) */
    int64_t asked_ms; /* local time when `attach` was sent */
    dt_clock_offset offset;
    dt_refusals refusals;
    const char *boot_id; /* boot id of the hello that is being handled */

    bool idle;              /* its hello reported that no rank was started */
    int64_t hello_sequence; /* next number of its journal at the hello */
    bool paused;            /* not reading from it */
    bool frozen;            /* nothing is sent or received */
    bool renew;             /* the connection may be stuck: do not share it next time */
    bool replace;           /* the next connection kills a hanging agent */
    /* the node was taken back: no connection is possible, and nothing runs there */
    bool preempted;
    bool unrecoverable; /* a later attempt could not reach it either */
    bool unreachable;   /* shown as not reachable: */
    char shown[600];    /* DT_NODE_NOT_REACHABLE with the full problem */
};

/* --- node_phase.c */
/* Runs the handler for an event. why: the new problem; NULL keeps the old one. An event without
 * a handler in the current phase is ignored. */
void dt_node_dispatch(dt_node_link *link, dt_node_event event, const char *why);
/* Handles an agent that answers but refuses: reconnects, or ends what runs there after too many
 * refusals. */
void dt_node_refuse(dt_node_link *link, const char *why, bool lasting);

/* --- silence.c */
/* Judges the silence of the node. Starts a probe and shows the node as unreachable if needed;
 * returns the act that the table handles. *why: the reason if the node is given up. */
dt_liveness_act dt_node_judge(dt_node_link *link, char *why, size_t why_size);
/* Writes the state of a node that does not answer, as stored: DT_NODE_NOT_REACHABLE (PROBLEM). */
void dt_node_say_unreachable(char *out, size_t size, const char *problem);

/* --- receive.c */
extern const dt_bridge_calls dt_node_receive_calls;

static inline double dt_node_now(const dt_node_link *link)
{
    return link->setup.clock->seconds;
}

#endif
