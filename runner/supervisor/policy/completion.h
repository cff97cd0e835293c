/* completion: whether a run has done all its steps, from facts alone.
 *
 * How many steps a run has is the engine's to say: by epochs it depends on the data, on the samples
 * of a step and on the steps that fp16 skipped. It says so when it is ready, and every checkpoint
 * keeps it. What nobody has said is not known, and a run whose steps are not known is not complete.
 */
#ifndef DT_POLICY_COMPLETION_H
#define DT_POLICY_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_completion {
    int64_t saved_step; /* of the checkpoint that the run would resume from */
    int64_t
        saved_total;    /* that it knows, where recipe and data are still what they were; 0: none */
    int64_t told_total; /* by the engine, or counted in the data as it would; 0: not known */
    int64_t steps, epochs; /* the recipe's schedule */
} dt_completion;

bool dt_completion_reached(const dt_completion *facts);
/* Steps of the whole run; 0: not known. */
int64_t dt_completion_total(const dt_completion *facts);

#endif
