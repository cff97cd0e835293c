/* best: the lowest score of a run (checkpoint.h), which counts once its checkpoint is whole.
 *
 * A save in the background ends steps after it began, or fails. Until then a score between the best
 * that is saved and the one that is being saved is the best of the run or not, by what becomes of
 * that save.
 * Ties       count as better: the newer of two has seen more
 */
#ifndef DT_ENGINE_TRAIN_BEST_H
#define DT_ENGINE_TRAIN_BEST_H

#include <stdbool.h>

typedef struct dt_best {
    double score;  /* saved; NaN: none */
    double saving; /* at least as low, and being saved; NaN: none */
} dt_best;

/* Whether dt_best_is waits for the save that is under way. */
bool dt_best_depends(const dt_best *best, double score);
/* Whether none before it was better; where it depends, as though that save had been good. */
bool dt_best_is(const dt_best *best, double score);

void dt_best_begin(dt_best *best, double score); /* its save begins */
void dt_best_end(dt_best *best, bool whole);     /* it ended; nothing where none had begun */

#endif
