/* restart: decides whether another attempt follows one that has ended. A pure function of facts.
 *
 *   the attempt                                            then
 *   did not fail, may not be tried again (verdict.h),
 *   no rank was ever started, or there is no plan          END
 *   completed and saved every step (completion.h)          DONE: the run is finished after all
 *   failure.max_restarts is 0                              END
 *   failed that often in a row without a new checkpoint    SPENT
 *   otherwise                                              AGAIN
 *
 * Budget     restarts in a row without a new checkpoint; a new checkpoint resets the count
 * Nodes      lost nodes are left out if at least nodes_min nodes remain; otherwise they are waited for
 */
#ifndef DT_POLICY_RESTART_H
#define DT_POLICY_RESTART_H

#include <stdbool.h>
#include <stdint.h>

#include "runner/supervisor/policy/completion.h"

typedef struct dt_restart_facts {
    bool may_restart; /* dt_verdict_may_restart */
    bool started;     /* a rank was started, in this attempt or one that led to it */
    bool planned;     /* there is a plan */
    dt_completion done;
    int64_t max_restarts; /* max_restarts of the recipe; 0: no restarts */
    int64_t restarts;     /* restarts that led here without a new checkpoint */
    int64_t start_step;   /* first step of this attempt; done.saved_step is that of the next */
    int64_t nodes, nodes_lost;
    int64_t nodes_min; /* nodes_min of the recipe; 0: all are needed */
} dt_restart_facts;

typedef enum dt_restart_act {
    DT_RESTART_END,
    DT_RESTART_DONE,
    DT_RESTART_SPENT,
    DT_RESTART_AGAIN,
} dt_restart_act;

typedef struct dt_restart_decision {
    dt_restart_act act;
    int64_t restarts;       /* AGAIN: count for the next attempt */
    int64_t nodes_left_out; /* AGAIN: lost nodes that are left out, all or none */
} dt_restart_decision;

/* False if dt_restart_decide returns END whatever the checkpoints are. */
bool dt_restart_is_possible(const dt_restart_facts *facts);
dt_restart_decision dt_restart_decide(const dt_restart_facts *facts);

#endif
