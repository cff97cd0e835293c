/* liveness: what the silence of a node means. A pure function of facts and a clock.
 *
 * Nothing is lost for being silent: it must be that nothing else speaks for it. A sign of life is a
 * line of its agent, a command that ran there, a machine that answers and lets nobody in (a key
 * that was withdrawn, a ticket that expired, a home that stalls), a step of other nodes' ranks,
 * which is made by all, and until the next one is due, as is a save or an evaluation (silence.h says
 * how long the first of them may take); and where the node could not be asked at all (no name server,
 * ssh's own configuration) nothing is known.
 *
 *   silent for   and                                                   then
 *    6 s                                                               a new connection is tried
 *    8 s         it is another machine                                 it is probed, and shown as
 *                                                                      not reachable
 *   10 s         no agent ever answered, first attempt                 no agent
 *   25 s         ... and no command has run there since the connection
 *                was begun, which may still log in                     no agent
 *   16 s         no sign of life since, the run trains, and other
 *                nodes are heard                                       lost
 *   16 s         no line, no command, the run stops                    lost
 *   25 s         ... and the machine answers, and a connection may
 *                still log in                                          lost
 *   20 s, 60 s   so long commands have run there; the run stops,       its agent hangs: it is
 *                trains and makes no step                              replaced, which ends its ranks
 *   15 s         after that                                            no agent
 *   the lease    no other node is heard either: it may be our own      lost
 *                network. Until the ranks have stopped by themselves;
 *                1 h where they never do
 *   1 h          all others have ended, and well: so has it, and it    lost
 *                says so when it can be reached
 *
 * Limits     runner/times.h
 * Units      seconds of a clock that moves only while input is read (channel/poll_clock.h)
 */
#ifndef DT_POLICY_LIVENESS_H
#define DT_POLICY_LIVENESS_H

#include <stdbool.h>

/* The other nodes of the run. */
typedef enum dt_liveness_peers {
    DT_PEERS_SILENT, /* or there are none */
    DT_PEERS_HEARD,  /* one at least */
    DT_PEERS_ENDED   /* all: nothing is left there */
} dt_liveness_peers;

typedef struct dt_liveness_facts {
    double now;
    double heard;     /* the last line of its agent, or when it was first expected */
    double connected; /* when the connection of now was begun */
    int tries;        /* connections since it was heard */
    bool connection;  /* there is one, in whatever state */
    bool here;        /* this machine */
    bool started;     /* ranks were, on it */
    bool idle;        /* its agent answered, and that no rank was started */
    bool stopping;    /* the run, or its attempt */
    bool waits;       /* for nodes that are away: the attempt is one that follows another */
    bool replaced;    /* its agent is being */
    double probed;    /* when a probe was last begun */
    double reached;   /* since when every probe has run a command there; 0: always */
    /* When it was last so, -1: never. */
    double command;   /* a command ran there */
    double answered;  /* the machine answered, and let nobody in */
    double unknown;   /* it could not be asked, for a reason of our own */
    double peer_step; /* another node reported a new step, or a phase (saving ...) */
    double step_gap;  /* between two of them, usually; 0: not known */
    dt_liveness_peers peers;
    double lease; /* after such a silence the ranks there have stopped by themselves; 0: never */
} dt_liveness_facts;

typedef enum dt_liveness_act {
    DT_LIVENESS_WAIT,
    DT_LIVENESS_RECONNECT,
    DT_LIVENESS_REPLACE,  /* its agent, by another */
    DT_LIVENESS_NO_AGENT, /* give it up: its agent is unavailable */
    DT_LIVENESS_LOST      /* give it up: nothing is heard of it */
} dt_liveness_act;

typedef struct dt_liveness_verdict {
    dt_liveness_act act;
    bool probe;       /* and look whether anything can be run there */
    bool unreachable; /* and say so */
} dt_liveness_verdict;

/* facts.reached after one more probe, which was begun then; ran: it ran a command there. Infinite: the last
 * one did not. proven: the last time before that something came from there, a line or an answer. One
 * that hung proves nothing of the time before its answer: where there was no proof for long, it
 * could be reached only since. */
double dt_liveness_reached(double reached, double proven, double begun, double now, bool ran);

dt_liveness_verdict dt_liveness_judge(const dt_liveness_facts *facts);

#endif
