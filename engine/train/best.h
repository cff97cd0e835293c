/* best: tracks the best score of a run (dt_score_by, checkpoint.h); lower is better.
 *
 * A score becomes the saved best only once its checkpoint is complete. A background save ends some
 * steps after it began, or fails. Until then, whether a score between the saved best and the one
 * being saved is the best of the run depends on the outcome of that save.
 * Ties       count as better: the later checkpoint has trained longer
 */
#ifndef DT_ENGINE_TRAIN_BEST_H
#define DT_ENGINE_TRAIN_BEST_H

#include <stdbool.h>

typedef struct dt_best {
    double score;  /* best score whose checkpoint is complete; NaN: none */
    double saving; /* score of the save in progress, not worse than `score`; NaN: none */
} dt_best;

/* Whether the result of dt_best_is for `score` depends on the outcome of the save in progress. */
bool dt_best_depends(const dt_best *best, double score);
/* Whether no earlier score is better. If that depends on the save in progress, assumes that it
 * succeeds. */
bool dt_best_is(const dt_best *best, double score);

void dt_best_begin(dt_best *best, double score); /* call when the save of `score` begins */
/* that save has ended; no effect if none is in progress */
void dt_best_end(dt_best *best, bool whole);

#endif
