/* node_int: what the files of a node's link share.
 *
 *   node_life.c   opened, asked, closed             receive.c          what its agent says
 *   node_phase.c  the [phase][event] table          silence.c       judged, and acted on
 *   bridge.c      lines to and from the agent       preparation.c   a thread makes it ready
 *   probe.c       can anything be run there?        node_process.c  a command there
 *   clock_offset.c  whose clock is how wrong        node_link.c     what it is like
 */
#ifndef DT_CONNECTION_NODE_INT_H
#define DT_CONNECTION_NODE_INT_H

#include "runner/supervisor/connection/bridge.h"
#include "runner/supervisor/connection/clock_offset.h"
#include "runner/supervisor/connection/node_link.h"
#include "runner/supervisor/connection/node_process.h"
#include "runner/supervisor/connection/preparation.h"
#include "runner/supervisor/connection/probe.h"
#include "runner/supervisor/policy/refusal.h"

typedef enum dt_node_event {
    DT_NODE_EVENT_BEGIN,
    DT_NODE_EVENT_PREPARED, /* the thread is done: prepared_status, problem */
    DT_NODE_EVENT_HELLO,
    DT_NODE_EVENT_CUT,   /* the connection is of no use any more: problem */
    DT_NODE_EVENT_SPENT, /* refusals had enough: problem */
    DT_NODE_EVENT_TICK,  /* of the timer */
    DT_NODE_EVENT_STOP,  /* grace_seconds */
    DT_NODE_EVENT_RELEASE,
    DT_NODE_EVENT_STORED,
    DT_NODE_EVENT_ENDED,   /* `dtrun-agent end` came to a good end */
    DT_NODE_EVENT_GIVE_UP, /* problem */
    DT_NODE_EVENT_COUNT
} dt_node_event;

struct dt_node_link {
    dt_node_setup setup;
    dt_node_calls calls;
    void *context;
    dt_bridge_calls words; /* what comes over the bridge (receive.c) */

    dt_node_phase phase;
    dt_node_layout place; /* where `placed` */
    bool placed;
    bool place_lost;      /* it was, and nobody knows where any more */
    const char *name;     /* of the setup, or of its place */
    char problem[512];    /* the last thing that went wrong on the way to it */
    double grace_seconds; /* of the last stop */
    bool person;          /* ... which a person asked for */
    dt_status prepared_status;

    dt_preparation *preparation; /* NULL: none is under way */
    dt_bridge *bridge;           /* NULL: none */
    dt_node_process *end;        /* `dtrun-agent end`; NULL: none */
    dt_node_prober *prober;
    uv_timer_t timer; /* until the next try; while connected: is it silent? */

    int tries;                /* connections since it was last heard */
    int end_tries;            /* of `end` */
    double connected_seconds; /* when the connection was begun */
    double heard_seconds;     /* the last line, or when it was first expected */
    double probed_seconds;    /* when the last probe was begun */
    double reached_seconds;   /* since when every probe ran a command; infinite: the last did not */
    double command_seconds, answered_seconds, unknown_seconds; /* what they proved (liveness.h) */
    int64_t asked_ms; /* our clock when `attach` was sent */
    dt_clock_offset offset;
    dt_refusals refusals;
    const char *boot_id; /* of the hello that is being taken */

    bool idle;              /* it said hello, and that no rank was started */
    int64_t hello_sequence; /* ... and where its journal ended then */
    bool paused;            /* it is not read from */
    bool frozen;            /* nothing passes, either way */
    bool renew;             /* the connection may be what is stuck: the next is one of its own */
    bool replace;           /* an agent that hangs there is killed by the next connection */
    bool preempted;         /* the last connection: never again, and nothing runs there */
    bool unrecoverable;     /* another attempt would not reach it either */
    bool unreachable;       /* and shown as such: */
    char shown[600];        /* DT_NODE_NOT_REACHABLE with the problem, whole */
};

/* --- node_phase.c */
/* why: kept as the problem; NULL: it stays. An event that a phase has no handler for is ignored. */
void dt_node_dispatch(dt_node_link *link, dt_node_event event, const char *why);
/* The agent answers, and is of no use: another connection, or the end of what runs there. */
void dt_node_refuse(dt_node_link *link, const char *why, bool lasting);

/* --- silence.c */
/* Judges what is heard of the node; the acts that are a matter of the table are returned. *why: what
 * to say where it is given up. */
dt_liveness_act dt_node_judge(dt_node_link *link, char *why, size_t why_size);
/* The state of a node that does not answer, as the store has it: DT_NODE_NOT_REACHABLE (PROBLEM). */
void dt_node_say_unreachable(char *out, size_t size, const char *problem);

/* --- receive.c */
extern const dt_bridge_calls dt_node_receive_calls;

static inline double dt_node_now(const dt_node_link *link)
{
    return link->setup.clock->seconds;
}

#endif
