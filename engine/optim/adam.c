/* adam: implements Adam: like adamw, but the decay is added to the gradient, g = g + decay*p,
 * instead of to the step (Kingma and Ba 2015). */
#include "engine/optim/optimizer.h"

static void factors(dt_optimizer_factors *out, const dt_optimizer_args *args)
{
    dt_adamw_factors(out, args);
    out->coupled = (float)args->options.weight_decay;
    out->decay = 1.0f;
}

const dt_optimizer dt_optimizer_adam = {.factors = factors, .step = dt_adamw_step};
