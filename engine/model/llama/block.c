#include "engine/model/llama/model_int.h"

/* mid (B,T,C) -> norm_2 (B,T,C) -> gate_up (B,T,2F) */
static dt_status make_gate_up(dt_model *model, dt_llama_block *a, const dt_tensor *w, dt_error *err)
{
    dt_device *device = model->device;
    dt_tensor weight = dt_decoder_joined(w, DT_LLAMA_GATE_W, DT_LLAMA_UP_W);
    dt_tensor bias = dt_decoder_joined(w, DT_LLAMA_GATE_B, DT_LLAMA_UP_B);
    dt_status st = DT_OK;

    DT_TRY(device->ops->rmsnorm_forward(device, &a->norm_2, &a->norm_2_rstd, &a->mid,
                                        &w[DT_LLAMA_NORM_2], model->config.llama.norm_eps, err));
    DT_TRY(device->ops->matmul_forward(device, &a->gate_up, &a->norm_2, &weight, &bias, err));
out:
    return st;
}

/* Computes every product that backward reads. */
dt_status dt_llama_block_products(dt_model *model, int layer, const dt_tensor *x,
                                  const dt_tensor *w, const dt_batch *dropout, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_llama_attention_forward(model, layer, x, w, dropout, err));
    DT_TRY(make_gate_up(model, dt_llama_block_of(model, layer), w, err));
out:
    return st;
}

dt_status dt_llama_block_forward(dt_model *model, int layer, dt_tensor *y, const dt_tensor *x,
                                 const dt_tensor *w, const dt_batch *dropout, dt_error *err)
{
    dt_device *device = model->device;
    dt_llama_block *a = dt_llama_block_of(model, layer);
    dt_status st = DT_OK;

    DT_TRY(dt_llama_block_products(model, layer, x, w, dropout, err));
    /* gate_up (B,T,2F) -> act (B,T,F) -> out (B,T,C) */
    DT_TRY(device->ops->swiglu_forward(device, &a->act, &a->gate_up, err));
    DT_TRY(dt_decoder_project(model, y, &a->mid, &a->act, &w[DT_LLAMA_DOWN_W], &w[DT_LLAMA_DOWN_B],
                              dropout, layer, DT_PHILOX_DROPOUT_MLP, err));
out:
    return st;
}

/* out = mid + dropout(down(silu(gate) up)), gate and up of norm_2(mid):
 * dstream (B,T,C) -> dproj (B,T,C) -> dact (B,T,F), overwrites act -> dgate_up (B,T,2F), overwrites
 * gate_up -> dnorm_2 (B,T,C), added to dstream */
static dt_status mlp_backward(dt_model *model, int layer, const dt_tensor *w, dt_tensor *dw,
                              const dt_batch *dropout, dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_decoder *state = model->state;
    dt_llama_block *a = dt_llama_block_of(model, layer);
    dt_tensor weight = dt_decoder_joined(w, DT_LLAMA_GATE_W, DT_LLAMA_UP_W);
    dt_tensor dweight = dt_decoder_joined(dw, DT_LLAMA_GATE_W, DT_LLAMA_UP_W);
    dt_tensor dbias = dt_decoder_joined(dw, DT_LLAMA_GATE_B, DT_LLAMA_UP_B);
    dt_tensor dproj;
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_project_grad(model, &dproj, dropout, layer, DT_PHILOX_DROPOUT_MLP, err));
    DT_TRY(ops->swiglu_forward(device, &a->act, &a->gate_up, err));
    DT_TRY(ops->matmul_backward_weight(device, &dw[DT_LLAMA_DOWN_W], &dw[DT_LLAMA_DOWN_B], &dproj,
                                       &a->act, err));
    DT_TRY(ops->matmul_backward_input(device, &a->act, &dproj, &w[DT_LLAMA_DOWN_W], err));
    DT_TRY(ops->swiglu_backward(device, &a->gate_up, &a->act, &a->gate_up, err));
    if (model->config.recompute != DT_RECOMPUTE_NONE) /* recompute the norm into dnarrow */
        DT_TRY(ops->rmsnorm_forward(device, &a->norm_2, &a->norm_2_rstd, &a->mid,
                                    &w[DT_LLAMA_NORM_2], model->config.llama.norm_eps, err));
    DT_TRY(ops->matmul_backward_weight(device, &dweight, &dbias, &a->gate_up, &a->norm_2, err));
    DT_TRY(dt_decoder_input_grad(model, &state->dnarrow, &a->gate_up, &weight, err));
    DT_TRY(ops->rmsnorm_backward(device, &state->dstream, &dw[DT_LLAMA_NORM_2], &state->dnarrow,
                                 &a->mid, &a->norm_2_rstd, &w[DT_LLAMA_NORM_2], err));
out:
    return st;
}

dt_status dt_llama_block_backward(dt_model *model, int layer, const dt_tensor *x,
                                  const dt_tensor *w, dt_tensor *dw, const dt_batch *dropout,
                                  dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(mlp_backward(model, layer, w, dw, dropout, err));
    DT_TRY(dt_llama_attention_backward(model, layer, x, w, dw, dropout, err));
out:
    return st;
}
