/* adamw: implements Adam with decoupled weight decay (Loshchilov and Hutter 2019).
 *
 *   m = beta1*m + (1-beta1)*g        v = beta2*v + (1-beta2)*g*g
 *   PYTORCH  p = p - lr*decay*p - lr * (m/(1-beta1^step)) / (sqrt(v/(1-beta2^step)) + eps)
 *   FAIRSEQ  p = p - lr*decay*p - lr * sqrt(1-beta2^step)/(1-beta1^step) * m / (sqrt(v) + eps)
 */
#include <math.h>

#include "engine/optim/optimizer.h"

void dt_adamw_factors(dt_optimizer_factors *out, const dt_optimizer_args *args)
{
    const dt_optimizer_options *options = &args->options;
    double step = (double)args->step;
    double correct_m = 1.0 - pow(options->beta1, step);
    double correct_v = sqrt(1.0 - pow(options->beta2, step));
    bool fairseq = options->variant == DT_OPTIMIZER_FAIRSEQ;

    *out = (dt_optimizer_factors){
        .grad_scale = (float)args->grad_scale,
        .decay = (float)(1.0 - args->lr * options->weight_decay),
        .keep_m = (float)options->beta1,
        .take_m = (float)(1.0 - options->beta1),
        .keep_v = (float)options->beta2,
        .take_v = (float)(1.0 - options->beta2),
        .step_size = (float)(fairseq ? args->lr * correct_v / correct_m : args->lr / correct_m),
        .v_scale = fairseq ? 1.0f : (float)(1.0 / correct_v),
        .eps = (float)options->eps,
        .draw = (uint32_t)args->step,
    };
}

dt_status dt_adamw_step(dt_device *device, dt_optimizer_part *part,
                        const dt_optimizer_factors *factors, dt_error *err)
{
    return dt_optimizer_step_by(DT_RULE_ADAM, device, part, factors, err);
}

const dt_optimizer dt_optimizer_adamw = {.factors = dt_adamw_factors, .step = dt_adamw_step};
