/* restart: whether another attempt follows one that has ended. A pure function of facts.
 *
 *   the attempt                                           then
 *   did not fail, may not be tried again (verdict.h),
 *   nothing was ever started, or there is no plan         END
 *   has done and saved every step (completion.h)          DONE: the run is finished after all
 *   failure.max_restarts is 0                             END
 *   failed that often in a row without a new checkpoint   SPENT
 *   else                                                  AGAIN
 *
 * Budget     restarts in a row that reached no new checkpoint; one that did begins a new count
 * Nodes      lost ones are left out where as many as nodes_min stay; else they are waited for
 */
#ifndef DT_POLICY_RESTART_H
#define DT_POLICY_RESTART_H

#include <stdbool.h>
#include <stdint.h>

#include "runner/supervisor/policy/completion.h"

typedef struct dt_restart_facts {
    bool may_restart; /* dt_verdict_may_restart */
    bool started;     /* a rank was, in this attempt or in one that led to it */
    bool planned;     /* there is a plan to continue with */
    dt_completion done;
    int64_t max_restarts; /* of the recipe; 0: none at all */
    int64_t restarts;     /* that led here without a new checkpoint */
    int64_t start_step;   /* of this attempt; done.saved_step is that of the next */
    int64_t nodes, nodes_lost;
    int64_t nodes_min; /* of the recipe; 0: all are needed */
} dt_restart_facts;

typedef enum dt_restart_act {
    DT_RESTART_END,
    DT_RESTART_DONE,
    DT_RESTART_SPENT,
    DT_RESTART_AGAIN,
} dt_restart_act;

typedef struct dt_restart_decision {
    dt_restart_act act;
    int64_t restarts;       /* AGAIN: that will have led to the next attempt */
    int64_t nodes_left_out; /* AGAIN: of the lost ones, all or none */
} dt_restart_decision;

/* Without a look at checkpoints: false, and dt_restart_decide says END whatever they are. */
bool dt_restart_is_possible(const dt_restart_facts *facts);
dt_restart_decision dt_restart_decide(const dt_restart_facts *facts);

#endif
