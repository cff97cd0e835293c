#include "engine/model/kind.h"
#include "engine/progress.h"

dt_status dt_model_before_unit(dt_model *model, int unit, bool backward, dt_error *err)
{
    const dt_model_hooks *hooks = model->hooks;

    dt_progress_made();
    return hooks && hooks->before_unit ? hooks->before_unit(hooks->self, unit, backward, err)
                                       : DT_OK;
}

dt_status dt_model_after_unit(dt_model *model, int unit, bool backward, dt_error *err)
{
    const dt_model_hooks *hooks = model->hooks;

    return hooks && hooks->after_unit ? hooks->after_unit(hooks->self, unit, backward, err) : DT_OK;
}

dt_status dt_model_grads_ready(dt_model *model, int unit, dt_error *err)
{
    const dt_model_hooks *hooks = model->hooks;

    return hooks && hooks->unit_grads_ready ? hooks->unit_grads_ready(hooks->self, unit, err)
                                            : DT_OK;
}

dt_status dt_model_blocks_forward(dt_model *model, int first, int end, dt_block_pass block,
                                  const dt_batch *batch, dt_error *err)
{
    dt_status st = DT_OK;

    for (int layer = first; layer < end; layer++) {
        DT_TRY(dt_model_before_unit(model, layer + 1, false, err));
        DT_TRY(block(model, layer, batch, err));
        DT_TRY(dt_model_after_unit(model, layer + 1, false, err));
    }
out:
    return st;
}

dt_status dt_model_blocks_backward(dt_model *model, int first, int end, dt_block_pass block,
                                   const dt_batch *batch, dt_error *err)
{
    dt_status st = DT_OK;

    for (int layer = end - 1; layer >= first; layer--) {
        DT_TRY(dt_model_before_unit(model, layer + 1, true, err));
        DT_TRY(block(model, layer, batch, err));
        DT_TRY(dt_model_after_unit(model, layer + 1, true, err));
        DT_TRY(dt_model_grads_ready(model, layer + 1, err));
    }
out:
    return st;
}

dt_status dt_model_visit_units(dt_model *model,
                               dt_status (*visit)(void *self, int unit, dt_error *err), void *self,
                               dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_model_before_unit(model, 0, false, err));
    DT_TRY(visit(self, 0, err));
    for (int unit = 1; unit < model->unit_count; unit++) {
        DT_TRY(dt_model_before_unit(model, unit, false, err));
        DT_TRY(visit(self, unit, err));
        DT_TRY(dt_model_after_unit(model, unit, false, err));
    }
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}

static const dt_param *param_of(const dt_model *model, int unit, int which)
{
    DT_ASSERT(which < model->units[unit].param_count);
    return &model->params[model->units[unit].first_param + which];
}

/* base NULL: without data. */
static dt_tensor view(const dt_param *param, void *base, dt_dtype dtype)
{
    unsigned char *data = base;
    dt_tensor out = {.dtype = dtype, .ndim = param->ndim};

    if (data != NULL)
        out.data = data + (size_t)param->offset_elems * dt_dtype_bytes(dtype);
    for (int i = 0; i < DT_MAX_DIMS; i++)
        out.dim[i] = param->held.dim[i];
    return out;
}

dt_tensor dt_model_weight(const dt_model *model, int unit, int which)
{
    const dt_param *param = param_of(model, unit, which);
    void *base = param->trainable ? model->weights[unit] : model->frozen[unit];

    DT_ASSERT(base);
    return view(param, base, model->config.dtype);
}

dt_tensor dt_model_grad(const dt_model *model, int unit, int which)
{
    const dt_param *param = param_of(model, unit, which);

    DT_ASSERT(!param->trainable || model->grads[unit]);
    return view(param, param->trainable ? model->grads[unit] : NULL, DT_F32);
}
