#include "engine/model/llama/model_int.h"

static dt_linear gate_up(const dt_block_call *c)
{
    return dt_linear_of(c, DT_LLAMA_GATE_W, DT_LLAMA_UP_W, DT_LLAMA_GATE_B, DT_LLAMA_UP_B,
                        DT_LINEAR_ROWS);
}

static dt_linear down(const dt_block_call *c)
{
    return dt_linear_of(c, DT_LLAMA_DOWN_W, DT_LLAMA_DOWN_W, DT_LLAMA_DOWN_B, DT_LLAMA_DOWN_B,
                        DT_LINEAR_COLUMNS);
}

static dt_status norm_2(const dt_block_call *c, dt_llama_block *a, dt_error *err)
{
    return c->model->device->ops->rmsnorm_forward(c->model->device, &a->norm_2, &a->norm_2_rstd,
                                                  &a->mid, &c->w[DT_LLAMA_NORM_2],
                                                  c->model->config.llama.norm_eps, err);
}

/* Computes every product that backward reads. */
dt_status dt_llama_block_products(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_llama_block *a = dt_llama_block_of(c->model, c->layer);
    dt_linear layer = gate_up(c);
    dt_status st = DT_OK;

    DT_TRY(dt_llama_attention_forward(c, x, err));
    /* mid (B,T,C) -> norm_2 (B,T,C) -> gate_up (B,T,2F) */
    DT_TRY(norm_2(c, a, err));
    DT_TRY(dt_linear_forward(c->model, &layer, &a->gate_up, &a->norm_2, err));
out:
    return st;
}

dt_status dt_llama_block_forward(const dt_block_call *c, dt_tensor *y, const dt_tensor *x,
                                 dt_error *err)
{
    dt_device *device = c->model->device;
    dt_llama_block *a = dt_llama_block_of(c->model, c->layer);
    dt_linear layer = down(c);
    dt_status st = DT_OK;

    DT_TRY(dt_llama_block_products(c, x, err));
    /* gate_up (B,T,2F) -> act (B,T,F) -> out (B,T,C) */
    DT_TRY(device->ops->swiglu_forward(device, &a->act, &a->gate_up, err));
    DT_TRY(dt_decoder_project(c, &layer, y, &a->mid, &a->act, DT_PHILOX_DROPOUT_MLP, err));
out:
    return st;
}

/* out = mid + dropout(down(silu(gate) up)), gate and up of norm_2(mid):
 * dstream (B,T,C) -> dproj (B,T,C) -> dact (B,T,F), overwrites act -> dgate_up (B,T,2F), overwrites
 * gate_up -> dnorm_2 (B,T,C), added to dstream */
static dt_status mlp_backward(const dt_block_call *c, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_decoder *state = model->state;
    dt_llama_block *a = dt_llama_block_of(model, c->layer);
    dt_linear up = gate_up(c), layer = down(c);
    dt_tensor dproj;
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_project_grad(c, &dproj, DT_PHILOX_DROPOUT_MLP, err));
    DT_TRY(ops->swiglu_forward(device, &a->act, &a->gate_up, err));
    DT_TRY(dt_linear_backward(model, &layer, &a->act, &dproj, &a->act, err));
    DT_TRY(ops->swiglu_backward(device, &a->gate_up, &a->act, &a->gate_up, err));
    if (model->config.recompute != DT_RECOMPUTE_NONE) /* into dnarrow */
        DT_TRY(norm_2(c, a, err));
    DT_TRY(dt_linear_backward(model, &up, &state->dnarrow, &a->gate_up, &a->norm_2, err));
    DT_TRY(ops->rmsnorm_backward(device, &state->dstream, &c->dw[DT_LLAMA_NORM_2], &state->dnarrow,
                                 &a->mid, &a->norm_2_rstd, &c->w[DT_LLAMA_NORM_2], err));
out:
    return st;
}

dt_status dt_llama_block_backward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(mlp_backward(c, err));
    DT_TRY(dt_llama_attention_backward(c, x, err));
out:
    return st;
}
