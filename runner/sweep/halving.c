#include "runner/sweep/halving.h"

#include <math.h>

#include "base/banned.h"

static bool is_better(double a, double b)
{
    return !isnan(a) && (isnan(b) || a < b);
}

bool dt_halving_cuts(const double *values, const bool *there, int64_t count, int64_t which,
                     double keep)
{
    int64_t reached = 0, ahead = 0, places;

    if (!there[which])
        return false;
    for (int64_t i = 0; i < count; i++) {
        if (!there[i])
            continue;
        reached++;
        if (i != which && (is_better(values[i], values[which]) ||
                           (i < which && !is_better(values[which], values[i]))))
            ahead++;
    }
    places = (int64_t)ceil(keep * (double)reached - 1e-9);
    return ahead >= (places > 1 ? places : 1);
}
