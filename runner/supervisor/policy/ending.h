/* ending: how long ranks have to end, and when they have ended by themselves. Pure functions.
 *
 *   why ranks are ended                              grace
 *   a stop                                           the recipe's grace_seconds
 *   another rank failed, a node was lost             10 s: they have nothing to save
 *   a stop at once, or they hang                     0 s
 *   the agent hears nothing of this machine for      the recipe's grace_seconds
 *   failure.launcher_lost (a lost launcher)
 *
 * Limits     runner/times.h
 * Units      seconds
 */
#ifndef DT_POLICY_ENDING_H
#define DT_POLICY_ENDING_H

#include <stdbool.h>

typedef struct dt_ending_facts {
    bool stop_asked, stop_now;
    bool failed, hung;
    double grace_seconds; /* of the recipe */
} dt_ending_facts;

double dt_ending_grace(const dt_ending_facts *facts);

/* After such a silence the ranks of a node have stopped by themselves; 0: they never do.
 * launcher_lost_seconds: of the recipe; 0: no end. */
double dt_ending_lease(double launcher_lost_seconds, double grace_seconds);

#endif
