/* connection_int: what the files of a node's link share. node_link.c: open, commands, close, queries.
 * node_phase.c: the [phase][event] table. silence.c: what silence means. receive.c: messages of the agent, and
 * the node's clock. bridge.c: lines to and from the agent. node_process.c: commands on the node, probes, and
 * its preparation on a thread. */
#ifndef DT_RUNNER_SUPERVISOR_CONNECTION_CONNECTION_INT_H
#define DT_RUNNER_SUPERVISOR_CONNECTION_CONNECTION_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/json.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/connection/node_link.h"
#include "runner/supervisor/policy/liveness.h"
#include "runner/transport/transport.h"

/* bridge: exchanges lines with one agent.
 *
 * A command (`dtrun-agent connect`, run through ssh or another transport) has one end of a socket pair as
 * its stdin and stdout, and a pipe as its stderr, on which it reports why a node cannot be reached.
 *
 * Ownership  close kills the command, and frees the bridge once the command is reaped; no callback is
 *            called after close. close may be called inside a callback
 * Threads    call from the loop's thread
 */

typedef struct dt_bridge dt_bridge;

/* All MUST be set. */
typedef struct dt_bridge_calls {
    /* a line of the agent */
    void (*line)(void *context, const char *text, size_t length, bool cut);
    void (*batch)(void *context); /* all complete lines of the last read were delivered */
    void (*problem)(void *context, const char *text, size_t length); /* a line of stderr */
    /* once, after the last `problem` */
    void (*ended)(void *context, const char *why);
} dt_bridge_calls;

dt_status dt_bridge_open(dt_bridge **out, uv_loop_t *loop, const char **argv,
                         const dt_bridge_calls *calls, void *context, dt_error *err);
void dt_bridge_close(dt_bridge *bridge); /* accepts NULL */

/* Sends a command; takes `command`. Does nothing if the bridge is NULL. */
void dt_bridge_send(dt_bridge *bridge, json_t *command);
/* Stops or resumes reading; lines that were read are still delivered. Accepts NULL. */
void dt_bridge_pause(dt_bridge *bridge, bool pause);
/* Suspends or resumes the command, and reading from it. Accepts NULL. */
void dt_bridge_freeze(dt_bridge *bridge, bool freeze);

/* clock_offset: estimates how far a node's clock is ahead of this machine's clock.
 *
 * A message stamped T on the node, requested at A and received at H here (all in ms), was stamped between
 * A and H: the clock is ahead by T - (A + H)/2, with an error of at most (H - A)/2. The answer with the
 * smallest error is used. A message that was not requested was stamped before it was received, so the
 * clock is ahead by at least T - H; this only corrects an estimate that is too low.
 */

typedef struct dt_clock_offset {
    int64_t ahead_ms;
    double error_ms; /* largest error; infinite: unknown */
} dt_clock_offset;

void dt_clock_offset_init(dt_clock_offset *offset);
void dt_clock_offset_answered(dt_clock_offset *offset, int64_t asked_ms, int64_t stamped_ms,
                              int64_t heard_ms);
void dt_clock_offset_heard(dt_clock_offset *offset, int64_t stamped_ms, int64_t heard_ms);

/* preparation: prepares a node on a thread of libuv's pool, while the loop runs.
 *
 * The thread has its own copy of the request; its progress comes over an async handle. The result is
 * written to place.json, also for a later supervisor.
 *
 * Ownership  frees itself after `done`, which is always called: keep the loop running until then
 * Threads    call from the loop's thread
 */

typedef struct dt_preparation dt_preparation;

typedef struct dt_preparation_calls {
    void (*news)(void *context, const char *text);
    /* The preparation pointer is invalid from here on. */
    void (*done)(void *context, dt_status st, const dt_error *err);
} dt_preparation_calls;

/* request: `cancelled`, `progress` and `context` are filled in here; what it points to must live
 * until `done`. */
dt_preparation *dt_preparation_begin(uv_loop_t *loop, const dt_prepare_request *request,
                                     const dt_preparation_calls *calls, void *context);
void dt_preparation_cancel(dt_preparation *preparation); /* takes effect soon; accepts NULL */

/* probe: checks whether a silent node can run commands, and whether the machine answers at all.
 *
 * The result is the exit code of `dtrun-reach --probe` (transport/transport.h). Several probes may run at
 * once: one that began while the network was cut may hang for longer than the cut.
 *
 * Threads    call from the loop's thread
 */

typedef struct dt_node_prober dt_node_prober;

typedef void dt_node_probed_fn(void *context, dt_contact contact, double begun_seconds);

dt_node_prober *dt_node_prober_open(uv_loop_t *loop, dt_node_probed_fn *probed, void *context);
/* Runs `agent --version` on the node. If that cannot be started, DT_CONTACT_UNKNOWN is reported
 * at once. now_seconds is passed to the callback as the start of the probe. */
void dt_node_prober_begin(dt_node_prober *prober, const char *node, const char *agent,
                          double now_seconds);
void dt_node_prober_forget(dt_node_prober *prober); /* cancels the callbacks of running probes */
void dt_node_prober_close(dt_node_prober *prober);  /* cancels the callbacks; accepts NULL */

/* --- the link */

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
    dt_bridge_calls bridge_calls; /* callbacks of the bridge (receive.c) */

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
/* Returns what the table says of an event in a phase. */
dt_reaction dt_node_reaction(dt_node_phase phase, dt_node_event event);
/* Runs the handler for an event, if the current phase handles it. why: the new problem; NULL keeps
 * the old one. */
void dt_node_dispatch(dt_node_link *link, dt_node_event event, const char *why);
/* Handles an agent that answers but refuses: reconnects, or ends what runs there after too many
 * refusals. */
void dt_node_refuse(dt_node_link *link, const char *why, bool lasting);

/* --- silence.c */
/* Writes the state of a node that does not answer, as stored: DT_NODE_NOT_REACHABLE (PROBLEM). */
void dt_node_describe_unreachable(char *out, size_t size, const char *problem);
/* Judges the silence of the node. Starts a probe and shows the node as unreachable if needed;
 * returns the act that the table handles. *why: the reason if the node is given up. */
dt_liveness_act dt_node_judge(dt_node_link *link, char *why, size_t why_size);

/* --- receive.c */
extern const dt_bridge_calls dt_node_receive_calls;

static inline double dt_node_now(const dt_node_link *link)
{
    return link->setup.clock->seconds;
}

#endif
