/* evaluations: reads the evaluations of a run, with all metrics of one step together.
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
    double loss, bleu; /* bleu: NaN if not measured */
} dt_evaluation;

/* Reads the evaluations after *after_step, oldest first, and advances *after_step to the last one. */
dt_status dt_evaluations_read(dt_evaluation **out, int64_t *count, int64_t *after_step,
                              dt_store *store, const char *run, dt_arena *arena, dt_error *err);
/* Adds "validation loss 1.9034  BLEU 21.30". */
void dt_evaluation_add(dt_strbuf *out, const dt_evaluation *evaluation);

#endif
