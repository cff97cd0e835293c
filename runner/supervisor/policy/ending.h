/* ending: gives the grace period of ranks, and the time after which they have ended on their own. Pure
 * functions.
 *
 *   why ranks are ended                              grace period
 *   a stop                                           grace_seconds of the recipe
 *   another rank failed, a node was lost             10 s: there is nothing to save
 *   stop --now, or the ranks hang                    0 s
 *   the agent has had no contact with the launch     grace_seconds of the recipe
 *   machine for failure.launcher_lost
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
    double grace_seconds; /* grace period of the recipe */
} dt_ending_facts;

double dt_ending_grace(const dt_ending_facts *facts);

/* Returns the silence after which the ranks of a node have ended on their own; 0: never.
 * launcher_lost_seconds: failure.launcher_lost of the recipe; 0: never. */
double dt_ending_lease(double launcher_lost_seconds, double grace_seconds);

#endif
