/* optim_int: declares what the files of the optimizers share. */
#ifndef DT_ENGINE_OPTIM_INT_H
#define DT_ENGINE_OPTIM_INT_H

#include "engine/optim/optimizer.h"

/* Update every element of the part by one rule. */
dt_status dt_optimizer_step_by(dt_optimizer_rule rule, dt_device *device, dt_optimizer_part *part,
                               const dt_optimizer_factors *factors, dt_error *err);

/* adamw.c: for optimizers that update some parameters by AdamW. */
void dt_adamw_factors(dt_optimizer_factors *out, const dt_optimizer_args *args);
dt_status dt_adamw_step(dt_device *device, dt_optimizer_part *part,
                        const dt_optimizer_factors *factors, dt_error *err);

#endif
