/* completion: decides whether a run has completed all its steps. Pure functions of facts.
 *
 * Only the engine knows how many steps a run has: with epochs the number depends on the data, on the
 * samples per step and on the steps that fp16 skipped. The engine reports it when it is ready, and every
 * checkpoint records it. A run whose number of steps is unknown is not complete.
 */
#ifndef DT_POLICY_COMPLETION_H
#define DT_POLICY_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
