/* perceptron: computes fc2(activation(fc1(x))). */
#include "engine/model/transformer/model_int.h"

/* The activation's output, later overwritten by its gradient. */
static dt_tensor inside(const dt_transformer_call *c)
{
    const dt_transformer_state *state = c->model->state;

    return dt_transformer_scratch(c->model, c->side, state->wide,
                                  dt_transformer_ffn(&c->model->config));
}

static dt_linear fc1(dt_transformer_call *c)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_FC_W, DT_TRANSFORMER_FC_W, DT_TRANSFORMER_FC_B,
                                 DT_TRANSFORMER_FC_B, DT_LINEAR_ROWS);
}

static dt_linear fc2(dt_transformer_call *c)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_PROJ_W, DT_TRANSFORMER_PROJ_W,
                                 DT_TRANSFORMER_PROJ_B, DT_TRANSFORMER_PROJ_B, DT_LINEAR_COLUMNS);
}

/* x (B,rows,C) -> fc (B,rows,F) -> activation (B,rows,F) -> y (B,rows,C) */
dt_status dt_transformer_perceptron_forward(dt_transformer_call *c, dt_tensor *y,
                                            const dt_tensor *x, dt_error *err)
{
    dt_linear in = fc1(c), proj = fc2(c);
    dt_device *device = c->model->device;
    dt_tensor active = inside(c);
    dt_status st = DT_OK;

    DT_TRY(dt_linear_forward(c->model, &in, &c->block->fc, x, err));
    if (y == NULL)
        return DT_OK;
    DT_TRY(device->ops->activation_forward(device, &active, &c->block->fc,
                                           c->model->config.transformer.activation, err));
    DT_TRY(dt_linear_forward(c->model, &proj, y, &active, err));
out:
    return st;
}

dt_status dt_transformer_perceptron_backward(dt_transformer_call *c, const dt_tensor *dy,
                                             const dt_tensor *x, dt_error *err)
{
    const dt_transformer_state *state = c->model->state;
    dt_activation_kind kind = c->model->config.transformer.activation;
    dt_device *device = c->model->device;
    const dt_ops *ops = device->ops;
    dt_linear in = fc1(c), proj = fc2(c);
    dt_tensor active = inside(c), dfc = inside(c);
    dt_tensor dx =
        dt_transformer_scratch(c->model, c->side, state->dread, c->model->config.decoder.embed);
    dt_status st = DT_OK;

    DT_TRY(ops->activation_forward(device, &active, &c->block->fc, kind, err));
    DT_TRY(dt_linear_backward(c->model, &proj, &dfc, dy, &active, err));
    DT_TRY(ops->activation_backward(device, &dfc, &dfc, &c->block->fc, kind, err));
    DT_TRY(dt_linear_backward(c->model, &in, &dx, &dfc, x, err));
out:
    return st;
}
