#include "engine/train/best.h"

#include <math.h>

#include "base/banned.h"

bool dt_best_depends(const dt_best *best, double loss)
{
    return loss > best->saving && !(loss > best->loss);
}

bool dt_best_is(const dt_best *best, double loss)
{
    return !isnan(loss) && !(loss > best->loss) && !(loss > best->saving);
}

void dt_best_begin(dt_best *best, double loss)
{
    best->saving = loss;
}

void dt_best_end(dt_best *best, bool whole)
{
    if (whole && !isnan(best->saving))
        best->loss = best->saving;
    best->saving = NAN;
}
