/* adam: as adamw, with g = g + decay*p in front and no decay behind (Kingma and Ba 2015). */
#include "engine/optim/optim_int.h"

#include "base/banned.h"

static void factors(dt_optimizer_factors *out, const dt_optimizer_args *args)
{
    dt_adamw_factors(out, args);
    out->coupled = (float)args->options.weight_decay;
    out->decay = 1.0f;
}

const dt_optimizer dt_optimizer_adam = {.factors = factors, .step = dt_adamw_step};
