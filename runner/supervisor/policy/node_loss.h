/* node_loss: decides when an agent that answers is unusable, and what follows if a node is unavailable. Pure
 * functions of facts.
 *
 * If a person started the attempt, a node that cannot be prepared ends it. After a restart the node may
 * only be rebooting, or its login may be broken for a moment: whatever the reason, the node worked before, so
 * it is tried again for an hour, unless the run may continue without it.
 *
 *   why a node was lost                            ranks may be there   another attempt
 *   silent (liveness.h), refuses (below)           if any started       without it, or waits for it
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
#ifndef DT_POLICY_NODE_LOSS_H
#define DT_POLICY_NODE_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct dt_preparation_facts {
    dt_status failed;      /* status of the last try */
    bool preparing;        /* the attempt is being prepared: no rank was started in it */
    int64_t restarts;      /* restarts that led to this attempt; 0: a person started it */
    bool in_job;           /* a Slurm job lends the node */
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
