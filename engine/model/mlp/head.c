#include <math.h>

#include "engine/model/mlp/model_int.h"

static bool has_classes(const dt_model *model)
{
    return model->config.mlp.loss == DT_LOSS_CROSS_ENTROPY;
}

dt_status dt_mlp_head_forward(dt_model *model, dt_error *err)
{
    dt_mlp_state *state = model->state;
    dt_linear linear = dt_mlp_linear(model, 0, false);

    return dt_linear_forward(model, &linear, &state->outputs,
                             dt_mlp_input_of(state, (int)model->config.mlp.layers), err);
}

/* Replaces the outputs by their gradient. */
static dt_status loss_backward(dt_model *model, const dt_tensor *targets, const double *loss_scale,
                               dt_error *err)
{
    dt_device *device = model->device;
    dt_mlp_state *state = model->state;
    dt_tensor classes = dt_tensor_1d(targets->data, DT_I32, state->B);

    if (has_classes(model))
        return device->ops->cross_entropy_backward(device, &state->losses, &state->outputs,
                                                   &classes, model->config.mlp.outputs, loss_scale,
                                                   0, err);
    return device->ops->squared_error_backward(device, &state->losses, &state->outputs, targets,
                                               loss_scale, err);
}

dt_status dt_mlp_head_train(dt_model *model, const dt_tensor *targets, const double *loss_scale,
                            dt_error *err)
{
    dt_mlp_state *state = model->state;
    dt_linear linear = dt_mlp_linear(model, 0, true);
    dt_status st = DT_OK;

    DT_TRY(loss_backward(model, targets, loss_scale, err));
    DT_TRY(dt_linear_backward(model, &linear, &state->dout, &state->outputs,
                              dt_mlp_input_of(state, (int)model->config.mlp.layers), err));
out:
    return st;
}

dt_status dt_mlp_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err)
{
    dt_device *device = model->device;
    dt_mlp_state *state = model->state;
    dt_tensor classes = dt_tensor_1d(targets->data, DT_I32, state->B);

    if (has_classes(model))
        return device->ops->cross_entropy_forward(device, &state->losses, &state->outputs, &classes,
                                                  model->config.mlp.outputs, err);
    return device->ops->squared_error_forward(device, &state->losses, &state->outputs, targets,
                                              err);
}

dt_status dt_mlp_count(int64_t *counted, dt_model *model, const dt_tensor *targets, dt_error *err)
{
    dt_mlp_state *state = model->state;
    const int32_t *classes = state->targets;
    const float *numbers = state->targets;
    dt_status st = DT_OK;

    DT_TRY(model->device->copy_out(model->device, state->targets, targets->data,
                                   dt_tensor_bytes(targets), err));
    *counted = 0;
    for (int64_t i = 0; i < dt_tensor_elems(targets); i++)
        *counted += has_classes(model) ? classes[i] >= 0 : !isnan(numbers[i]);
out:
    return st;
}
