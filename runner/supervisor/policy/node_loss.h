/* node_loss: decides what follows if a node is unavailable. Pure functions of facts.
 *
 * If a person started the attempt, a node that cannot be prepared ends it. After a restart the node may
 * only be rebooting: it is tried again for an hour, unless the run may continue without it.
 *
 *   why a node was lost                            ranks may be there   another attempt
 *   silent (liveness.h), refuses (refusal.h)       if any started       without it, or waits for it
 *   preempted: its job was taken back or ended     no                   no: it never comes back
 *   rebooted since its ranks were started          no                   as in the first line
 *   cannot be prepared, and never will             no                   no
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

#endif
