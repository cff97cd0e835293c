/* evaluations: the evaluations of a run, one for each step: what they measured belongs on one line.
 *
 * Ownership  the array lives in the arena that is passed
 */
#ifndef DT_RUNNER_VIEW_EVALUATIONS_H
#define DT_RUNNER_VIEW_EVALUATIONS_H

#include "base/strbuf.h"
#include "store/store.h"

#define DT_VALID_LOSS "valid_loss"
#define DT_VALID_BLEU "valid_bleu"

typedef struct dt_evaluation {
    int64_t attempt, step, time_ms;
    double loss, bleu; /* bleu NaN: it was not measured */
} dt_evaluation;

/* Those after (exclusive) *after_step, oldest first; *after_step becomes the step of the last. */
dt_status dt_evaluations_read(dt_evaluation **out, int64_t *count, int64_t *after_step,
                              dt_store *store, const char *run, dt_arena *arena, dt_error *err);
/* "validation loss 1.9034  BLEU 21.30" */
void dt_evaluation_add(dt_strbuf *out, const dt_evaluation *evaluation);

#endif
