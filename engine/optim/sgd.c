/* sgd: implements stochastic gradient descent, with or without momentum (as in PyTorch, no dampening).
 *
 *   g = g + decay*p;  m = momentum*m + g, and m = g at step 1
 *   p = p - lr*m, with nesterov p = p - lr*(g + momentum*m), without momentum p = p - lr*g
 */
#include "engine/optim/optimizer.h"

static void factors(dt_optimizer_factors *out, const dt_optimizer_args *args)
{
    *out = (dt_optimizer_factors){
        .grad_scale = (float)args->grad_scale,
        .coupled = (float)args->options.weight_decay,
        .lr = (float)args->lr,
        .momentum = (float)args->options.momentum,
        .first = args->step == 1,
        .nesterov = args->options.nesterov,
    };
}

static dt_status step(dt_device *device, dt_optimizer_part *part, const dt_optimizer_factors *f,
                      dt_error *err)
{
    return dt_optimizer_step_by(part->states > 0 ? DT_RULE_MOMENTUM : DT_RULE_PLAIN, device, part,
                                f, err);
}

const dt_optimizer dt_optimizer_sgd = {.factors = factors, .step = step};
