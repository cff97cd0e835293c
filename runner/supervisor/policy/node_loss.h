/* node_loss: what follows where a node is unavailable. Pure functions of facts.
 *
 * A node that cannot be made ready ends the attempt where a person started it. After a restart it
 * may only be rebooting: it is tried again for an hour, unless the run may continue without it.
 *
 *   why a node was lost                            ranks may be there   another attempt
 *   silent (liveness.h), refuses (refusal.h)       if any started       without it, or it is waited for
 *   preempted: its job was taken back or ended     no                   none: it never comes back
 *   rebooted since its ranks were started          no                   as above
 *   cannot be prepared, and never will             no                   none
 *
 * Units      seconds of the session's clock
 */
#ifndef DT_POLICY_NODE_LOSS_H
#define DT_POLICY_NODE_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct dt_preparation_facts {
    dt_status failed;      /* how the last try ended */
    bool preparing;        /* the attempt is being prepared: no rank was ever started in it */
    int64_t restarts;      /* that led to this attempt; 0: a person started it */
    int64_t nodes;         /* of the attempt */
    int64_t nodes_min;     /* of the recipe; 0: all are needed */
    double waited_seconds; /* since the attempt began */
} dt_preparation_facts;

/* Whether preparing the node is worth another try. */
bool dt_node_loss_waits(const dt_preparation_facts *facts);
/* Whether no later attempt could prepare it either. */
bool dt_node_loss_is_final(dt_status failed);

typedef struct dt_node_loss_facts {
    bool started;   /* ranks were, on it, in this attempt */
    bool preempted; /* it was taken back: nothing runs there */
    bool rebooted;  /* since they were started */
} dt_node_loss_facts;

/* Whether ranks of the lost node may still be there. */
bool dt_node_loss_leaves_ranks(const dt_node_loss_facts *facts);

#endif
