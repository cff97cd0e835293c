#include "engine/train/best.h"

#include <math.h>

bool dt_best_depends(const dt_best *best, double score)
{
    return score > best->saving && !(score > best->score);
}

bool dt_best_is(const dt_best *best, double score)
{
    return !isnan(score) && !(score > best->score) && !(score > best->saving);
}

void dt_best_begin(dt_best *best, double score)
{
    best->saving = score;
}

void dt_best_end(dt_best *best, bool whole)
{
    if (whole && !isnan(best->saving))
        best->score = best->saving;
    best->saving = NAN;
}
