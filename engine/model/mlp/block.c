#include "engine/model/mlp/model_int.h"

const dt_tensor *dt_mlp_input_of(const dt_mlp_state *state, int layer)
{
    return layer == 0 ? &state->rows : &state->layers[layer - 1].out;
}

dt_linear dt_mlp_linear(const dt_model *model, int unit, bool backward)
{
    dt_linear linear = {.w = dt_model_weight(model, unit, DT_MLP_W),
                        .b = dt_model_weight(model, unit, DT_MLP_B)};

    if (backward) {
        linear.dw = dt_model_grad(model, unit, DT_MLP_W);
        linear.db = dt_model_grad(model, unit, DT_MLP_B);
    }
    return linear;
}

static dt_status activate(dt_model *model, int layer, dt_error *err)
{
    dt_mlp_state *state = model->state;
    dt_mlp_layer *a = &state->layers[layer];

    return model->device->ops->activation_forward(model->device, &a->out, &a->sums,
                                                  model->config.mlp.activation, err);
}

dt_status dt_mlp_layer_forward(dt_model *model, int layer, const dt_batch *batch, dt_error *err)
{
    dt_mlp_state *state = model->state;
    dt_linear linear = dt_mlp_linear(model, layer + 1, false);
    dt_status st = DT_OK;

    /* (B,I) or (B,W) -> sums (B,W) -> out (B,W) */
    DT_TRY(dt_linear_forward(model, &linear, &state->layers[layer].sums,
                             dt_mlp_input_of(state, layer), err));
    DT_TRY(activate(model, layer, err));
out:
    return st;
}

/* Computes no gradient of the model's input rows. */
dt_status dt_mlp_layer_backward(dt_model *model, int layer, const dt_batch *batch, dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_mlp_state *state = model->state;
    dt_linear linear = dt_mlp_linear(model, layer + 1, true);
    dt_tensor dsums = state->dout;
    dt_status st = DT_OK;

    /* dout (B,W) -> dsums (B,W), in place -> dw (W,I) or (W,W), db (W) -> dspare (B,W) */
    DT_TRY(ops->activation_backward(device, &dsums, &state->dout, &state->layers[layer].sums,
                                    model->config.mlp.activation, err));
    if (layer > 0 && model->config.recompute != DT_RECOMPUTE_NONE)
        DT_TRY(activate(model, layer - 1, err));
    DT_TRY(dt_linear_backward(model, &linear, layer > 0 ? &state->dspare : NULL, &dsums,
                              dt_mlp_input_of(state, layer), err));
    if (layer > 0) {
        state->dout = state->dspare;
        state->dspare = dsums;
    }
out:
    return st;
}
