/* restart: how long ranks may take to end, and whether another attempt follows. Pure functions of facts.
 *
 *   the attempt                                            then
 *   did not fail, may not be tried again (verdict.h),
 *   no rank was ever started, or there is no plan          END
 *   completed and saved every step                         DONE: the run is finished after all
 *   failure.max_restarts is 0                              END
 *   failed that often in a row without a new checkpoint    SPENT
 *   failed at once with the error of the one before, and
 *   neither did a step or saved a checkpoint               SAME
 *   otherwise                                              AGAIN
 *
 * Steps      only the engine knows how many a run has: with epochs the number depends on the data, on the
 *            samples per step and on the steps that fp16 skipped. The engine reports it when it is ready, and
 *            every checkpoint records it. A run whose number of steps is unknown is not complete
 * Budget     restarts in a row without a new checkpoint; a new checkpoint resets the count
 * Pause      restarts of a command wait, each four times as long as the one before, so that what is wrong can pass
 * Nodes      lost nodes are left out if at least nodes_min nodes remain; otherwise they are waited for
 */
#ifndef DT_RUNNER_SUPERVISOR_POLICY_RESTART_H
#define DT_RUNNER_SUPERVISOR_POLICY_RESTART_H

#include <stdbool.h>
#include <stdint.h>

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

typedef struct dt_ending_facts {
    bool stop_asked, stop_now;
    bool failed, hung;
    double grace_seconds; /* grace period of the recipe */
} dt_ending_facts;

double dt_ending_grace(const dt_ending_facts *facts);

/* Returns the silence after which the ranks of a node have ended on their own; 0: never.
 * launcher_lost_seconds: failure.launcher_lost of the recipe; 0: never. */
double dt_ending_lease(double launcher_lost_seconds, double grace_seconds);

typedef struct dt_completion {
    int64_t saved_step; /* step of the checkpoint that the run would resume from */
    /* total recorded in that checkpoint, if recipe and data are unchanged; 0: unknown */
    int64_t saved_total;
    /* total reported by the engine, or counted in the data the same way; 0: unknown */
    int64_t told_total;
    int64_t steps, epochs; /* the recipe's schedule */
} dt_completion;

bool dt_completion_reached(const dt_completion *facts);
/* Returns the number of steps of the whole run; 0: unknown. */
int64_t dt_completion_total(const dt_completion *facts);

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
    bool
        same_error; /* both attempts of a command failed at once with the same error, without a step */
} dt_restart_facts;

typedef enum dt_restart_act {
    DT_RESTART_END,
    DT_RESTART_DONE,
    DT_RESTART_SPENT,
    DT_RESTART_SAME,
    DT_RESTART_AGAIN,
} dt_restart_act;

typedef struct dt_restart_decision {
    dt_restart_act act;
    int64_t restarts;       /* AGAIN: count for the next attempt */
    int64_t nodes_left_out; /* AGAIN: lost nodes that are left out, all or none */
} dt_restart_decision;

/* Returns true if the reasons of two failures are the same text, whatever the numbers in them: ports, processes and
 * times differ. */
bool dt_restart_same_reason(const char *a, const char *b);
/* Returns the seconds before a command is started again. restarts: in a row without a new checkpoint, from 1. */
double dt_restart_pause(int64_t restarts, double first_seconds, double most_seconds);

/* Returns the seconds that an attempt with fewer nodes lasts at least before it grows. grown: how often the run has. */
double dt_grow_pause(int64_t grown, double first_seconds, double most_seconds);

/* False if dt_restart_decide returns END whatever the checkpoints are. */
bool dt_restart_is_possible(const dt_restart_facts *facts);
dt_restart_decision dt_restart_decide(const dt_restart_facts *facts);

#endif
