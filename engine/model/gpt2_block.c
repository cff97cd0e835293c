#include "engine/model/gpt2_int.h"

#include "base/banned.h"

/* What is added to the residual stream: y = dropout(x w^T + b) */
static dt_status project(dt_model *model, dt_tensor *y, const dt_tensor *x, const dt_tensor *w,
                         const dt_tensor *b, const dt_batch *dropout, int layer, dt_philox_op op,
                         dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    dt_status st = DT_OK;
    dt_philox_key key;

    DT_TRY(ops->matmul_forward(model->device, y, x, w, b, err));
    if (dropout) {
        key = dt_gpt2_dropout_key(dropout, layer, op);
        DT_TRY(ops->dropout_forward(model->device, y, y, model->config.dropout, &key, err));
    }
out:
    return st;
}

dt_status dt_gpt2_block_forward(dt_model *model, int layer, const dt_tensor *x,
                                const dt_batch *dropout, dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_gpt2_state *state = model->state;
    dt_gpt2_block *a = &state->blocks[layer];
    dt_tensor w[DT_GPT2_BLOCK_PARAMS];
    dt_status st = DT_OK;

    for (int i = 0; i < DT_GPT2_BLOCK_PARAMS; i++)
        w[i] = dt_gpt2_weight(model, layer + 1, i);

    DT_TRY(ops->layernorm_forward(device, &a->ln_1, &a->ln_1_mean, &a->ln_1_rstd, x,
                                  &w[DT_GPT2_LN_1_W], &w[DT_GPT2_LN_1_B], DT_GPT2_NORM_EPS, err));
    DT_TRY(ops->matmul_forward(device, &a->qkv, &a->ln_1, &w[DT_GPT2_ATTN_W], &w[DT_GPT2_ATTN_B],
                               err));
    DT_TRY(ops->attention_forward(device, &a->att, &a->lse, &a->qkv, model->config.heads, 0, NULL,
                                  err));
    DT_TRY(project(model, &state->narrow, &a->att, &w[DT_GPT2_ATTN_PROJ_W], &w[DT_GPT2_ATTN_PROJ_B],
                   dropout, layer, DT_PHILOX_DROPOUT_RESIDUAL, err));
    DT_TRY(ops->residual_forward(device, &a->mid, x, &state->narrow, err));

    DT_TRY(ops->layernorm_forward(device, &a->ln_2, &a->ln_2_mean, &a->ln_2_rstd, &a->mid,
                                  &w[DT_GPT2_LN_2_W], &w[DT_GPT2_LN_2_B], DT_GPT2_NORM_EPS, err));
    DT_TRY(ops->matmul_forward(device, &a->fc, &a->ln_2, &w[DT_GPT2_FC_W], &w[DT_GPT2_FC_B], err));
    DT_TRY(ops->gelu_forward(device, &a->gelu, &a->fc, err));
    DT_TRY(project(model, &state->narrow, &a->gelu, &w[DT_GPT2_MLP_PROJ_W], &w[DT_GPT2_MLP_PROJ_B],
                   dropout, layer, DT_PHILOX_DROPOUT_MLP, err));
    DT_TRY(ops->residual_forward(device, &a->out, &a->mid, &state->narrow, err));
out:
    return st;
}

/* The gradient that reaches a projection's output: the stream's, through the dropout. */
static dt_status projection_grad(dt_model *model, dt_tensor *dy, const dt_batch *dropout, int layer,
                                 dt_philox_op op, dt_error *err)
{
    dt_gpt2_state *state = model->state;
    dt_philox_key key;

    *dy = state->dstream;
    if (!dropout)
        return DT_OK;
    *dy = state->narrow;
    key = dt_gpt2_dropout_key(dropout, layer, op);
    return model->device->ops->dropout_backward(model->device, dy, &state->dstream,
                                                model->config.dropout, &key, err);
}

dt_status dt_gpt2_block_backward(dt_model *model, int layer, const dt_tensor *x,
                                 const dt_batch *dropout, dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_gpt2_state *state = model->state;
    dt_gpt2_block *a = &state->blocks[layer];
    dt_tensor w[DT_GPT2_BLOCK_PARAMS], dw[DT_GPT2_BLOCK_PARAMS];
    dt_tensor dproj, dln = state->dnarrow, datt = state->dnarrow, dgelu = state->dwide;
    dt_tensor dqkv = dt_tensor_3d(state->dwide.data, model->config.dtype, state->B, state->T,
                                  3 * model->config.embed);
    dt_status st = DT_OK;

    for (int i = 0; i < DT_GPT2_BLOCK_PARAMS; i++) {
        w[i] = dt_gpt2_weight(model, layer + 1, i);
        dw[i] = dt_gpt2_grad(model, layer + 1, i);
    }

    /* out = mid + dropout(c_proj(gelu(c_fc(ln_2(mid))))) */
    DT_TRY(projection_grad(model, &dproj, dropout, layer, DT_PHILOX_DROPOUT_MLP, err));
    DT_TRY(ops->matmul_backward_weight(device, &dw[DT_GPT2_MLP_PROJ_W], &dw[DT_GPT2_MLP_PROJ_B],
                                       &dproj, &a->gelu, err));
    DT_TRY(ops->matmul_backward_input(device, &dgelu, &dproj, &w[DT_GPT2_MLP_PROJ_W], err));
    DT_TRY(ops->gelu_backward(device, &dgelu, &dgelu, &a->fc, err));
    DT_TRY(ops->matmul_backward_weight(device, &dw[DT_GPT2_FC_W], &dw[DT_GPT2_FC_B], &dgelu,
                                       &a->ln_2, err));
    DT_TRY(ops->matmul_backward_input(device, &dln, &dgelu, &w[DT_GPT2_FC_W], err));
    DT_TRY(ops->layernorm_backward(device, &state->dstream, &dw[DT_GPT2_LN_2_W],
                                   &dw[DT_GPT2_LN_2_B], &dln, &a->mid, &a->ln_2_mean, &a->ln_2_rstd,
                                   &w[DT_GPT2_LN_2_W], err));

    /* mid = x + dropout(c_proj(attention(c_attn(ln_1(x))))) */
    DT_TRY(projection_grad(model, &dproj, dropout, layer, DT_PHILOX_DROPOUT_RESIDUAL, err));
    DT_TRY(ops->matmul_backward_weight(device, &dw[DT_GPT2_ATTN_PROJ_W], &dw[DT_GPT2_ATTN_PROJ_B],
                                       &dproj, &a->att, err));
    DT_TRY(ops->matmul_backward_input(device, &datt, &dproj, &w[DT_GPT2_ATTN_PROJ_W], err));
    DT_TRY(ops->attention_backward(device, &dqkv, &datt, &a->qkv, &a->att, &a->lse,
                                   model->config.heads, 0, NULL, err));
    DT_TRY(ops->matmul_backward_weight(device, &dw[DT_GPT2_ATTN_W], &dw[DT_GPT2_ATTN_B], &dqkv,
                                       &a->ln_1, err));
    DT_TRY(ops->matmul_backward_input(device, &dln, &dqkv, &w[DT_GPT2_ATTN_W], err));
    DT_TRY(ops->layernorm_backward(device, &state->dstream, &dw[DT_GPT2_LN_1_W],
                                   &dw[DT_GPT2_LN_1_B], &dln, x, &a->ln_1_mean, &a->ln_1_rstd,
                                   &w[DT_GPT2_LN_1_W], err));
out:
    return st;
}
