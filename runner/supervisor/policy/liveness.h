/* liveness: whether a node lives, and what follows if it does not. Pure functions of facts and a clock.
 *
 * A node is lost only if nothing shows that it is alive. A sign of life is: a line of its agent; a command
 * that ran there; a machine that answers but refuses the login (a withdrawn key, an expired ticket, a home
 * directory that stalls); a step of other nodes' ranks, because all ranks take part in it. A step counts
 * until the next one is due, as do a save and an evaluation (watchdog.h says how long the first may take).
 * If a local problem prevents contact (no name server, an error in the ssh configuration), nothing is known.
 *
 *   silent for   and                                                   then
 *    6 s                                                               try a new connection
 *    8 s         it is another machine                                 probe it, and show it as
 *                                                                      not reachable
 *   10 s         no agent ever answered, first attempt                 no agent
 *   25 s         ... and the connection may still be logging in        no agent
 *   16 s         no sign of life, the run trains, and other nodes
 *                are heard                                             lost
 *   16 s         no line and no command, the run stops                 lost
 *   25 s         ... and the machine answers, and a connection may
 *                still be logging in                                   lost
 *   20 s, 60 s   commands ran there all that time; the run stops (20),  its agent hangs: replace it,
 *                or trains and makes no step (60)                      which ends its ranks
 *   15 s         after a replacement                                   no agent
 *   the lease    no other node is heard either: the problem may be     lost
 *                the local network. Lasts until the ranks have stopped
 *                on their own; 1 h if they never do
 *   1 h          all other nodes have ended well: this one has too,    lost
 *                and reports it once it can be reached
 *
 * Limits     runner/times.h
 * Units      seconds of a clock that advances only while input is read (channel/poll_clock.h)
 */
#ifndef DT_RUNNER_SUPERVISOR_POLICY_LIVENESS_H
#define DT_RUNNER_SUPERVISOR_POLICY_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The other nodes of the run. */
typedef enum dt_liveness_peers {
    DT_PEERS_SILENT, /* or there are no others */
    DT_PEERS_HEARD,  /* at least one is heard */
    DT_PEERS_ENDED   /* all have ended */
} dt_liveness_peers;

typedef struct dt_liveness_facts {
    double now;
    double heard;     /* last line of its agent, or the time when it was first expected */
    double connected; /* start of the current connection */
    int tries;        /* connections since the last line */
    bool connection;  /* a connection exists, in any state */
    bool here;        /* the node is this machine */
    bool started;     /* ranks were started on it */
    bool idle;        /* its agent answered that no rank was started */
    bool stopping;    /* the run or its attempt is being ended */
    bool waits;       /* wait for unavailable nodes: the attempt is a restart */
    bool replaced;    /* its agent is being replaced */
    double probed;    /* start of the last probe */
    double reached;   /* since then, every probe has run a command there; 0: always */
    /* Last times; -1: never. */
    double command;   /* a command ran there */
    double answered;  /* the machine answered but refused the login */
    double unknown;   /* a local problem prevented contact */
    double peer_step; /* another node reported a new step or phase (saving, ...) */
    double step_gap;  /* usual time between two of them; 0: unknown */
    dt_liveness_peers peers;
    double lease; /* silence after which the ranks there have ended on their own; 0: never */
} dt_liveness_facts;

typedef enum dt_liveness_act {
    DT_LIVENESS_WAIT,
    DT_LIVENESS_RECONNECT,
    DT_LIVENESS_REPLACE,  /* replace its agent */
    DT_LIVENESS_NO_AGENT, /* give the node up: its agent is unavailable */
    DT_LIVENESS_LOST      /* give the node up: there is no sign of life */
} dt_liveness_act;

typedef struct dt_liveness_verdict {
    dt_liveness_act act;
    bool probe;       /* also start a probe */
    bool unreachable; /* also show the node as not reachable */
} dt_liveness_verdict;

/* Returns the new facts.reached after a probe that began at `begun` and ended `now`. ran: it ran
 * a command there; otherwise the result is infinite. proven: the last time before the probe that
 * something came from the node, a line or an answer. A late answer does not prove that the node
 * could be reached before: after a long time without proof the result is the start of the probe. */
double dt_liveness_reached(double reached, double proven, double begun, double now, bool ran);

dt_liveness_verdict dt_liveness_judge(const dt_liveness_facts *facts);

/* node_loss: decides when an agent that answers is unusable, and what follows if a node is unavailable. Pure
 * functions of facts.
 *
 * If a person started the attempt, a node that cannot be prepared ends it. After a restart the node may
 * only be rebooting, or its login may be broken for a moment: whatever the reason, the node worked before, so
 * it is tried again for an hour, unless the run may continue without it.
 *
 *   why a node was lost                            ranks may be there   another attempt
 *   silent, refuses (below)           if any started       without it, or waits for it
 *   preempted: its job was taken back or ended     no                   no: it never comes back
 *   rebooted since its ranks were started          no                   as in the first line
 *   cannot be prepared, though it never was        no                   no
 *
 * The agent refuses `attach` (another run, an unreadable journal), or keeps sending lines that cannot be
 * parsed. Because it is heard, no silence gives it up; so refusals are counted instead. Each event that
 * is accepted in between resets the count. An agent of another protocol version is left alone instead.
 *
 *   lasting refusals         5 in a row    the ranks there are ended
 *   temporary refusals      60 in a row    the same
 *   ending the ranks fails   3 times       the node is given up
 *
 * Units      seconds of the session's clock
 */

typedef struct dt_preparation_facts {
    dt_status failed;      /* status of the last try */
    bool preparing;        /* the attempt is being prepared: no rank was started in it */
    int64_t restarts;      /* restarts that led to this attempt; 0: a person started it */
    bool in_job;           /* a job lends the node, as one of Slurm */
    int64_t nodes;         /* nodes of the attempt */
    int64_t nodes_min;     /* nodes_min of the recipe; 0: all are needed */
    double waited_seconds; /* time since the attempt began */
} dt_preparation_facts;

/* True if preparing the node is worth another try. */
bool dt_node_loss_waits(const dt_preparation_facts *facts);
/* True if no later attempt could prepare the node either. */
bool dt_node_loss_is_final(dt_status failed);

typedef struct dt_node_loss_facts {
    bool started;   /* ranks were started on it in this attempt */
    bool preempted; /* its job was taken back: nothing runs there */
    bool rebooted;  /* since its ranks were started */
} dt_node_loss_facts;

/* True if ranks of the lost node may still be running. */
bool dt_node_loss_leaves_ranks(const dt_node_loss_facts *facts);

enum { DT_REFUSAL_END_TRIES = 3 };

typedef struct dt_refusals {
    int weight;         /* weight of the refusals in a row */
    int64_t next_event; /* number of the next event at the last refusal */
} dt_refusals;

/* Counts a refusal. next_event: number of the next expected event; lasting: a retry would be
 * refused too. Returns true if it was one too many. */
bool dt_refusal_is_last(dt_refusals *refusals, int64_t next_event, bool lasting);

#endif
