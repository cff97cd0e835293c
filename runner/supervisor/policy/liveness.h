/* liveness: decides what the silence of a node means. A pure function of facts and a clock.
 *
 * A node is lost only if nothing shows that it is alive. A sign of life is: a line of its agent; a command
 * that ran there; a machine that answers but refuses the login (a withdrawn key, an expired ticket, a home
 * directory that stalls); a step of other nodes' ranks, because all ranks take part in it. A step counts
 * until the next one is due, as do a save and an evaluation (silence.h says how long the first may take).
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
#ifndef DT_POLICY_LIVENESS_H
#define DT_POLICY_LIVENESS_H

#include <stdbool.h>

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

#endif
