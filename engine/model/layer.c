#include "engine/model/linear.h"
#include "engine/ops/ops.h"

dt_tensor dt_layer_term(const dt_model *model, const dt_tensor *y, const dt_tensor *terms)
{
    dt_tensor term = *y;

    if (model->peers == NULL || y->dtype == DT_F32)
        return term;
    term.dtype = DT_F32;
    term.data = terms->data;
    return term;
}

dt_status dt_layer_sum(dt_model *model, dt_tensor *y, const dt_tensor *term, dt_error *err)
{
    dt_status st = DT_OK;

    if (model->peers == NULL)
        return DT_OK;
    DT_TRY(model->peers->sum(model->peers->self, term, err));
    if (term->data != y->data)
        DT_TRY(model->device->ops->cast(model->device, y, term, err));
out:
    return st;
}

bool dt_layer_adds_once(const dt_model *model)
{
    return model->peers == NULL || model->config.tensor.rank == 0;
}
