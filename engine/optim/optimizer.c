#include "engine/optim/optimizer.h"

const dt_optimizer *dt_optimizer_of(dt_optimizer_kind kind)
{
#define ROW(KIND, NAME, ...) [DT_OPTIMIZER_##KIND] = &dt_optimizer_##NAME,
    static const dt_optimizer *const optimizers[] = {DT_OPTIMIZERS(ROW)};

    return optimizers[kind];
}

dt_status dt_optimizer_step_by(dt_optimizer_rule rule, dt_device *device, dt_optimizer_part *part,
                               const dt_optimizer_factors *factors, dt_error *err)
{
    return device->ops->optimizer_step(device, rule, &part->param, &part->copy, part->state,
                                       &part->grad, factors, err);
}
