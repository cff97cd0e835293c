#include "engine/model/gpt2/model_int.h"
#include "recipes/architecture/decoder.h"

/* Whether fc and GELU are one op, in every forward pass of the model or in none. Backward
 * recomputes GELU from the rounded fc, and fc too under DT_RECOMPUTE_FULL. */
static bool fuses_gelu(const dt_model *model)
{
    return model->device->ops->matmul_gelu_forward != NULL &&
           model->config.gpt2.activation == DT_ACTIVATION_GELU_TANH;
}

/* Queries, keys and values for attention. If the pass extends each of several sequences, first
 * appends the new keys and values to the cache. */
static dt_status see(dt_qkv *out, dt_model *model, int layer, dt_gpt2_block *a, dt_error *err)
{
    const dt_decoder *state = model->state;
    int64_t heads = dt_decoder_heads(&model->config), A = dt_gpt2_attended(&model->config);
    int64_t D = A / heads;
    dt_status st = DT_OK;

    *out = dt_qkv_packed(&a->attended, heads);
    if (!state->growth.each) {
        out->q = dt_heads_last(out->q, a->att.dim[1]);
        return DT_OK;
    }
    DT_TRY(dt_decoder_keep(model, DT_GPT2_KEPT, layer, &a->qkv, 0, err));
    out->k = dt_decoder_kept_heads(model, DT_GPT2_KEPT, layer, A, heads, D);
    out->v = dt_decoder_kept_heads(model, DT_GPT2_KEPT, layer, 2 * A, heads, D);
out:
    return st;
}

/* From the block's input up to fc: every product that backward reads; and GELU, if fused with fc. */
dt_status dt_gpt2_block_products(dt_model *model, int layer, const dt_tensor *x, const dt_tensor *w,
                                 const dt_batch *dropout, dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_gpt2_block *a = dt_gpt2_block_of(model, layer);
    dt_philox_key key = {0};
    dt_attention_args args = dt_decoder_attention_args(model, dropout, layer, &key);
    dt_status st = DT_OK;
    dt_qkv seen;

    /* x (B,T,C) -> ln_1 (B,T,C) -> qkv (B,T,3A) -> att (B,T,A) -> mid (B,T,C) */
    DT_TRY(ops->layernorm_forward(device, &a->ln_1, &a->ln_1_mean, &a->ln_1_rstd, x,
                                  &w[DT_GPT2_LN_1_W], &w[DT_GPT2_LN_1_B],
                                  dt_gpt2_norm_eps(&model->config), err));
    DT_TRY(ops->matmul_forward(device, &a->qkv, &a->ln_1, &w[DT_GPT2_ATTN_W], &w[DT_GPT2_ATTN_B],
                               err));
    DT_TRY(see(&seen, model, layer, a, err));
    DT_TRY(ops->attention_forward(device, &a->att, &a->lse, &seen, &args, err));
    DT_TRY(dt_decoder_project(model, &a->mid, x, &a->att, &w[DT_GPT2_ATTN_PROJ_W],
                              &w[DT_GPT2_ATTN_PROJ_B], dropout, layer, DT_PHILOX_DROPOUT_RESIDUAL,
                              err));

    /* mid (B,T,C) -> ln_2 (B,T,C) -> fc (B,T,F) */
    DT_TRY(ops->layernorm_forward(device, &a->ln_2, &a->ln_2_mean, &a->ln_2_rstd, &a->mid,
                                  &w[DT_GPT2_LN_2_W], &w[DT_GPT2_LN_2_B],
                                  dt_gpt2_norm_eps(&model->config), err));
    if (fuses_gelu(model))
        DT_TRY(ops->matmul_gelu_forward(device, &a->gelu, &a->fc, &a->ln_2, &w[DT_GPT2_FC_W],
                                        &w[DT_GPT2_FC_B], err));
    else
        DT_TRY(
            ops->matmul_forward(device, &a->fc, &a->ln_2, &w[DT_GPT2_FC_W], &w[DT_GPT2_FC_B], err));
out:
    return st;
}

dt_status dt_gpt2_block_forward(dt_model *model, int layer, dt_tensor *y, const dt_tensor *x,
                                const dt_tensor *w, const dt_batch *dropout, dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_gpt2_block *a = dt_gpt2_block_of(model, layer);
    dt_status st = DT_OK;

    DT_TRY(dt_gpt2_block_products(model, layer, x, w, dropout, err));
    /* fc (B,T,F) -> gelu (B,T,F) -> out (B,T,C) */
    if (!fuses_gelu(model))
        DT_TRY(
            ops->activation_forward(device, &a->gelu, &a->fc, model->config.gpt2.activation, err));
    DT_TRY(dt_decoder_project(model, y, &a->mid, &a->gelu, &w[DT_GPT2_MLP_PROJ_W],
                              &w[DT_GPT2_MLP_PROJ_B], dropout, layer, DT_PHILOX_DROPOUT_MLP, err));
out:
    return st;
}

/* Backward of a linear layer whose input all ranks have: gradients of weight and bias from dy and
 * the input x, then the gradient of the input. `dx` may be the same memory as `x`: x is read first. */
static dt_status linear_backward(dt_model *model, dt_tensor *dx, dt_tensor *dw, dt_tensor *db,
                                 const dt_tensor *dy, const dt_tensor *x, const dt_tensor *w,
                                 dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    dt_status st = DT_OK;

    DT_TRY(ops->matmul_backward_weight(model->device, dw, db, dy, x, err));
    DT_TRY(dt_decoder_input_grad(model, dx, dy, w, err));
out:
    return st;
}

/* Gradient of fc's output: dfc = (dproj w) gelu'(fc). */
static dt_status gelu_input_grad(dt_model *model, dt_tensor *dfc, const dt_tensor *dproj,
                                 const dt_tensor *w, const dt_tensor *fc, dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_status st = DT_OK;

    if (ops->matmul_gelu_backward != NULL &&
        model->config.gpt2.activation == DT_ACTIVATION_GELU_TANH)
        return ops->matmul_gelu_backward(device, dfc, dproj, w, fc, err);
    DT_TRY(ops->matmul_backward_input(device, dfc, dproj, w, err));
    DT_TRY(ops->activation_backward(device, dfc, dfc, fc, model->config.gpt2.activation, err));
out:
    return st;
}

/* out = mid + dropout(c_proj(gelu(c_fc(ln_2(mid))))):
 * dstream (B,T,C) -> dproj (B,T,C) -> dgelu (B,T,F) -> dln (B,T,C), added to dstream */
static dt_status mlp_backward(dt_model *model, int layer, const dt_tensor *w, dt_tensor *dw,
                              const dt_batch *dropout, dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_decoder *state = model->state;
    dt_gpt2_block *a = dt_gpt2_block_of(model, layer);
    dt_tensor dproj, dln = state->dnarrow, dgelu = a->gelu; /* dgelu overwrites GELU's output */
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_project_grad(model, &dproj, dropout, layer, DT_PHILOX_DROPOUT_MLP, err));
    DT_TRY(ops->activation_forward(device, &a->gelu, &a->fc, model->config.gpt2.activation, err));
    DT_TRY(ops->matmul_backward_weight(device, &dw[DT_GPT2_MLP_PROJ_W], &dw[DT_GPT2_MLP_PROJ_B],
                                       &dproj, &a->gelu, err));
    DT_TRY(gelu_input_grad(model, &dgelu, &dproj, &w[DT_GPT2_MLP_PROJ_W], &a->fc, err));
    if (model->config.recompute != DT_RECOMPUTE_NONE) /* recompute the norm into dnarrow */
        DT_TRY(ops->layernorm_forward(device, &a->ln_2, &a->ln_2_mean, &a->ln_2_rstd, &a->mid,
                                      &w[DT_GPT2_LN_2_W], &w[DT_GPT2_LN_2_B],
                                      dt_gpt2_norm_eps(&model->config), err));
    DT_TRY(linear_backward(model, &dln, &dw[DT_GPT2_FC_W], &dw[DT_GPT2_FC_B], &dgelu, &a->ln_2,
                           &w[DT_GPT2_FC_W], err));
    DT_TRY(ops->layernorm_backward(device, &state->dstream, &dw[DT_GPT2_LN_2_W],
                                   &dw[DT_GPT2_LN_2_B], &dln, &a->mid, &a->ln_2_mean, &a->ln_2_rstd,
                                   &w[DT_GPT2_LN_2_W], err));
out:
    return st;
}

/* mid = x + dropout(c_proj(attention(c_attn(ln_1(x))))):
 * dstream (B,T,C) -> dproj (B,T,C) -> datt (B,T,A) -> dqkv (B,T,3A) -> dln (B,T,C), added to dstream */
static dt_status attention_backward(dt_model *model, int layer, const dt_tensor *x,
                                    const dt_tensor *w, dt_tensor *dw, const dt_batch *dropout,
                                    dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    const dt_model_config *config = &model->config;
    dt_decoder *state = model->state;
    dt_gpt2_block *a = dt_gpt2_block_of(model, layer);
    dt_tensor dproj, dln = state->dnarrow, datt = state->dnarrow;
    dt_tensor dqkv = dt_tensor_3d(state->wide.data, config->dtype, state->B, state->T,
                                  3 * dt_gpt2_attended(config));
    dt_philox_key key = {0};
    dt_attention_args args = dt_decoder_attention_args(model, dropout, layer, &key);
    dt_qkv seen = dt_qkv_packed(&a->qkv, dt_decoder_heads(config)),
           dseen = dt_qkv_packed(&dqkv, dt_decoder_heads(config));
    dt_status st = DT_OK;

    datt.dim[2] = dt_gpt2_attended(config);
    DT_TRY(dt_decoder_project_grad(model, &dproj, dropout, layer, DT_PHILOX_DROPOUT_RESIDUAL, err));
    DT_TRY(ops->matmul_backward_weight(device, &dw[DT_GPT2_ATTN_PROJ_W], &dw[DT_GPT2_ATTN_PROJ_B],
                                       &dproj, &a->att, err));
    DT_TRY(ops->matmul_backward_input(device, &datt, &dproj, &w[DT_GPT2_ATTN_PROJ_W], err));
    DT_TRY(ops->attention_backward(device, &dseen, &datt, &seen, &a->att, &a->lse, &args, err));
    if (config->recompute != DT_RECOMPUTE_NONE) /* recompute the norm into dnarrow */
        DT_TRY(ops->layernorm_forward(device, &a->ln_1, &a->ln_1_mean, &a->ln_1_rstd, x,
                                      &w[DT_GPT2_LN_1_W], &w[DT_GPT2_LN_1_B],
                                      dt_gpt2_norm_eps(&model->config), err));
    DT_TRY(linear_backward(model, &dln, &dw[DT_GPT2_ATTN_W], &dw[DT_GPT2_ATTN_B], &dqkv, &a->ln_1,
                           &w[DT_GPT2_ATTN_W], err));
    DT_TRY(ops->layernorm_backward(device, &state->dstream, &dw[DT_GPT2_LN_1_W],
                                   &dw[DT_GPT2_LN_1_B], &dln, x, &a->ln_1_mean, &a->ln_1_rstd,
                                   &w[DT_GPT2_LN_1_W], err));
out:
    return st;
}

dt_status dt_gpt2_block_backward(dt_model *model, int layer, const dt_tensor *x, const dt_tensor *w,
                                 dt_tensor *dw, const dt_batch *dropout, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(mlp_backward(model, layer, w, dw, dropout, err));
    DT_TRY(attention_backward(model, layer, x, w, dw, dropout, err));
out:
    return st;
}
