#include "engine/model/transformer/model_int.h"

static dt_tensor view(const dt_model *model, int unit, int which, dt_dtype dtype,
                      dt_tensor (*of)(const dt_model *, int unit, int which))
{
    int before = 0;

    if (dt_transformer_lacks(&model->config, unit, which))
        return (dt_tensor){.dtype = dtype};
    for (int i = 0; i < which; i++)
        before += !dt_transformer_lacks(&model->config, unit, i);
    return of(model, unit, before);
}

dt_tensor dt_transformer_weight(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, model->config.dtype, dt_model_weight);
}

dt_tensor dt_transformer_grad(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, DT_F32, dt_model_grad);
}

dt_linear dt_transformer_linear(dt_transformer_call *c, int w_first, int w_last, int b_first,
                                int b_last, dt_linear_cut cut)
{
    const dt_transformer_state *state = c->model->state;
    dt_block_call block = {.model = c->model,
                           .layer = c->side->first_layer + c->layer,
                           .w = c->w,
                           .dw = c->backward ? c->dw : NULL,
                           .dropout = c->dropout,
                           .terms = &state->terms};

    return dt_linear_of(&block, w_first, w_last, b_first, b_last, cut);
}
