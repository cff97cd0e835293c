#include "engine/optim/scaler.h"

#include <math.h>

/* far below the maximum of fp32, in case all gradients stay zero for long */
#define SCALE_MAX 0x1p60

void dt_scaler_init(dt_scaler *out, const dt_recipe *recipe)
{
    bool on = recipe->precision.kind == DT_PRECISION_FP16;

    *out = (dt_scaler){
        .on = on,
        .scale = on ? recipe->precision.loss_scale : 1,
        .floor = recipe->precision.min_loss_scale,
        .window = recipe->precision.scale_window,
    };
}

dt_status dt_scaler_step(dt_scaler *scaler, double norm, bool *skip, dt_error *err)
{
    *skip = scaler->on && !isfinite(norm);
    if (!scaler->on)
        return DT_OK;
    if (*skip) {
        scaler->scale *= 0.5;
        scaler->clean_steps = 0;
        scaler->skipped_steps++;
        if (scaler->scale < scaler->floor)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "the loss scale has fallen to %g, below 'precision.min_loss_scale' %g: "
                           "gradients overflow whatever the scale (try 'precision: bf16', or a "
                           "lower 'optimizer.lr')",
                           scaler->scale, scaler->floor);
        return DT_OK;
    }
    if (++scaler->clean_steps >= scaler->window) {
        scaler->clean_steps = 0;
        if (scaler->scale < SCALE_MAX)
            scaler->scale *= 2;
    }
    return DT_OK;
}
