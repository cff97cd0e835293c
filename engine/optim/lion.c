/* lion: implements Lion, with steps of equal size by the sign of a momentum (Chen et al. 2023, "Symbolic
 * Discovery of Optimization Algorithms", algorithm 2).
 *
 *   p = p - lr*decay*p - lr * sign(beta1*m + (1-beta1)*g);  m = beta2*m + (1-beta2)*g
 */
#include "engine/optim/optimizer.h"

static void factors(dt_optimizer_factors *out, const dt_optimizer_args *args)
{
    const dt_optimizer_options *options = &args->options;

    *out = (dt_optimizer_factors){
        .grad_scale = (float)args->grad_scale,
        .decay = (float)(1.0 - args->lr * options->weight_decay),
        .lr = (float)args->lr,
        .momentum = (float)options->beta1,
        .keep_m = (float)options->beta2,
        .take_m = (float)(1.0 - options->beta2),
    };
}

static dt_status step(dt_device *device, dt_optimizer_part *part, const dt_optimizer_factors *f,
                      dt_error *err)
{
    return dt_optimizer_step_by(DT_RULE_LION, device, part, f, err);
}

const dt_optimizer dt_optimizer_lion = {.factors = factors, .step = step};
