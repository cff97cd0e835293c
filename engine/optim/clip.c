#include "engine/optim/clip.h"

double dt_clip_factor(double norm, double max_norm)
{
    double factor;

    if (max_norm <= 0)
        return 1;
    factor = max_norm / (norm + 1e-6);
    return factor > 1 ? 1 : factor; /* the comparison is false for NaN, so NaN is returned */
}
