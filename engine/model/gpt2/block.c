#include "engine/model/gpt2/model_int.h"
#include "recipes/architecture/decoder.h"

/* --- the block's linear layers */

static dt_linear attn(const dt_block_call *c)
{
    return dt_linear_of(c, DT_GPT2_ATTN_W, DT_GPT2_ATTN_W, DT_GPT2_ATTN_B, DT_GPT2_ATTN_B,
                        DT_LINEAR_ROWS);
}

static dt_linear attn_proj(const dt_block_call *c)
{
    return dt_linear_of(c, DT_GPT2_ATTN_PROJ_W, DT_GPT2_ATTN_PROJ_W, DT_GPT2_ATTN_PROJ_B,
                        DT_GPT2_ATTN_PROJ_B, DT_LINEAR_COLUMNS);
}

static dt_linear fc(const dt_block_call *c)
{
    return dt_linear_of(c, DT_GPT2_FC_W, DT_GPT2_FC_W, DT_GPT2_FC_B, DT_GPT2_FC_B, DT_LINEAR_ROWS);
}

static dt_linear mlp_proj(const dt_block_call *c)
{
    return dt_linear_of(c, DT_GPT2_MLP_PROJ_W, DT_GPT2_MLP_PROJ_W, DT_GPT2_MLP_PROJ_B,
                        DT_GPT2_MLP_PROJ_B, DT_LINEAR_COLUMNS);
}

/* --- forward */

/* Whether fc and GELU are one op, in every forward pass of the model or in none. Unless all is kept, backward
 * recomputes GELU from the rounded fc, and fc too under DT_RECOMPUTE_FULL. */
static bool fuses_gelu(const dt_model *model)
{
    return dt_linear_fuses_gelu(model) && model->config.gpt2.activation == DT_ACTIVATION_GELU_TANH;
}

/* Queries, keys and values for attention. If the pass extends each of several sequences, first
 * appends the new keys and values to the cache. */
static dt_status see(dt_qkv *out, const dt_block_call *c, dt_gpt2_block *a, dt_error *err)
{
    dt_model *model = c->model;
    const dt_decoder *state = model->state;
    int64_t heads = dt_decoder_heads(&model->config), A = dt_gpt2_attended(&model->config);
    int64_t D = A / heads;
    dt_status st = DT_OK;

    *out = dt_qkv_packed(&a->attended, heads);
    if (!state->growth.each) {
        out->q = dt_heads_last(out->q, a->att.dim[1]);
        return DT_OK;
    }
    DT_TRY(dt_decoder_keep(model, DT_GPT2_KEPT, c->layer, &a->qkv, 0, err));
    out->k = dt_decoder_kept_heads(model, DT_GPT2_KEPT, c->layer, A, heads, D);
    out->v = dt_decoder_kept_heads(model, DT_GPT2_KEPT, c->layer, 2 * A, heads, D);
out:
    return st;
}

static dt_status norm_1(const dt_block_call *c, dt_gpt2_block *a, const dt_tensor *x, dt_error *err)
{
    return c->model->device->ops->layernorm_forward(
        c->model->device, &a->ln_1, &a->ln_1_mean, &a->ln_1_rstd, x, &c->w[DT_GPT2_LN_1_W],
        &c->w[DT_GPT2_LN_1_B], dt_gpt2_norm_eps(&c->model->config), err);
}

static dt_status norm_2(const dt_block_call *c, dt_gpt2_block *a, dt_error *err)
{
    return c->model->device->ops->layernorm_forward(
        c->model->device, &a->ln_2, &a->ln_2_mean, &a->ln_2_rstd, &a->mid, &c->w[DT_GPT2_LN_2_W],
        &c->w[DT_GPT2_LN_2_B], dt_gpt2_norm_eps(&c->model->config), err);
}

/* From the block's input up to fc: every product that backward reads; and GELU, if fused with fc. */
dt_status dt_gpt2_block_products(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    dt_gpt2_block *a = dt_gpt2_block_of(model, c->layer);
    dt_linear qkv = attn(c), out_proj = attn_proj(c), up = fc(c);
    dt_philox_key key = {0};
    dt_attention_args args = dt_decoder_attention_args(c, &key);
    dt_status st = DT_OK;
    dt_qkv seen;

    /* x (B,T,C) -> ln_1 (B,T,C) -> qkv (B,T,3A) -> att (B,T,A) -> mid (B,T,C) */
    DT_TRY(norm_1(c, a, x, err));
    DT_TRY(dt_linear_forward(model, &qkv, &a->qkv, &a->ln_1, err));
    DT_TRY(see(&seen, c, a, err));
    DT_TRY(device->ops->attention_forward(device, &a->att, &a->lse, &seen, &args, err));
    DT_TRY(dt_decoder_project(c, &out_proj, &a->mid, x, &a->att, DT_PHILOX_DROPOUT_RESIDUAL, err));

    /* mid (B,T,C) -> ln_2 (B,T,C) -> fc (B,T,F) */
    DT_TRY(norm_2(c, a, err));
    DT_TRY(fuses_gelu(model) ? dt_linear_forward_gelu(model, &up, &a->gelu, &a->fc, &a->ln_2, err)
                             : dt_linear_forward(model, &up, &a->fc, &a->ln_2, err));
out:
    return st;
}

dt_status dt_gpt2_block_forward(const dt_block_call *c, dt_tensor *y, const dt_tensor *x,
                                dt_error *err)
{
    dt_device *device = c->model->device;
    dt_gpt2_block *a = dt_gpt2_block_of(c->model, c->layer);
    dt_linear down = mlp_proj(c);
    dt_status st = DT_OK;

    DT_TRY(dt_gpt2_block_products(c, x, err));
    /* fc (B,T,F) -> gelu (B,T,F) -> out (B,T,C) */
    if (!fuses_gelu(c->model))
        DT_TRY(device->ops->activation_forward(device, &a->gelu, &a->fc,
                                               c->model->config.gpt2.activation, err));
    DT_TRY(dt_decoder_project(c, &down, y, &a->mid, &a->gelu, DT_PHILOX_DROPOUT_MLP, err));
out:
    return st;
}

/* --- backward */

/* Takes the bias's gradient of a projection onto the residual stream for the norm's backward pass, which reads the
 * stream's gradient: that is the gradient of the projection's output too, unless dropout is between. */
static dt_tensor take_projection_db(const dt_block_call *c, dt_linear *projection)
{
    return dt_linear_take_db(projection, c->model->device->ops->layernorm_backward_bias != NULL &&
                                             !dt_decoder_drops(c->model, c->dropout));
}

/* Adds the gradient of a norm's input to dstream. db: of the projection onto the stream; no data: not summed here */
static dt_status norm_backward(const dt_block_call *c, int w, dt_tensor *db, const dt_tensor *dy,
                               const dt_tensor *x, const dt_tensor *mean, const dt_tensor *rstd,
                               dt_error *err)
{
    dt_device *device = c->model->device;
    dt_decoder *state = c->model->state;

    if (db->data != NULL)
        return device->ops->layernorm_backward_bias(device, &state->dstream, &c->dw[w],
                                                    &c->dw[w + 1], db, dy, x, mean, rstd, &c->w[w],
                                                    err);
    return device->ops->layernorm_backward(device, &state->dstream, &c->dw[w], &c->dw[w + 1], dy, x,
                                           mean, rstd, &c->w[w], err);
}

/* out = mid + dropout(c_proj(gelu(c_fc(ln_2(mid))))):
 * dstream (B,T,C) -> dproj (B,T,C) -> dfc (B,T,F) -> dln (B,T,C), added to dstream */
static dt_status mlp_backward(const dt_block_call *c, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_activation_kind activation = model->config.gpt2.activation;
    dt_decoder *state = model->state;
    dt_gpt2_block *a = dt_gpt2_block_of(model, c->layer);
    dt_linear up = fc(c), down = mlp_proj(c);
    dt_tensor dproj, dln = state->dnarrow, dfc = a->gelu; /* dfc overwrites GELU's output */
    dt_tensor db = take_projection_db(c, &down);
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_project_grad(c, &dproj, DT_PHILOX_DROPOUT_MLP, err));
    if (!dt_model_keeps_all(&model->config))
        DT_TRY(ops->activation_forward(device, &a->gelu, &a->fc, activation, err));
    DT_TRY(dt_linear_backward_activated(model, &down, &dfc, &dproj, &a->gelu, &a->fc, activation,
                                        err));
    if (!dt_model_keeps_norms(&model->config)) /* into dnarrow */
        DT_TRY(norm_2(c, a, err));
    DT_TRY(dt_linear_backward(model, &up, &dln, &dfc, &a->ln_2, err));
    DT_TRY(norm_backward(c, DT_GPT2_LN_2_W, &db, &dln, &a->mid, &a->ln_2_mean, &a->ln_2_rstd, err));
out:
    return st;
}

/* db: of the product before attention; no data: not summed here */
static dt_status attend_backward(const dt_block_call *c, const dt_qkv *dx, dt_tensor *db,
                                 const dt_tensor *dout, const dt_qkv *x,
                                 const dt_attention_args *args, dt_error *err)
{
    dt_gpt2_block *a = dt_gpt2_block_of(c->model, c->layer);
    dt_device *device = c->model->device;

    if (db->data != NULL)
        return device->ops->attention_backward_bias(device, dx, db, dout, x, &a->att, &a->lse, args,
                                                    err);
    return device->ops->attention_backward(device, dx, dout, x, &a->att, &a->lse, args, err);
}

/* mid = x + dropout(c_proj(attention(c_attn(ln_1(x))))):
 * dstream (B,T,C) -> dproj (B,T,C) -> datt (B,T,A) -> dqkv (B,T,3A) -> dln (B,T,C), added to dstream */
static dt_status attention_backward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    const dt_model_config *config = &model->config;
    dt_decoder *state = model->state;
    dt_gpt2_block *a = dt_gpt2_block_of(model, c->layer);
    dt_linear qkv = attn(c), out_proj = attn_proj(c);
    dt_tensor db = take_projection_db(c, &out_proj);
    dt_tensor qkv_db = dt_linear_take_db(&qkv, ops->attention_backward_bias != NULL);
    dt_tensor dproj, dln = state->dnarrow, datt = state->dnarrow;
    dt_tensor dqkv = dt_tensor_3d(state->wide.data, config->dtype, state->B, state->T,
                                  3 * dt_gpt2_attended(config));
    dt_philox_key key = {0};
    dt_attention_args args = dt_decoder_attention_args(c, &key);
    dt_qkv seen = dt_qkv_packed(&a->qkv, dt_decoder_heads(config)),
           dseen = dt_qkv_packed(&dqkv, dt_decoder_heads(config));
    dt_status st = DT_OK;

    datt.dim[2] = dt_gpt2_attended(config);
    DT_TRY(dt_decoder_project_grad(c, &dproj, DT_PHILOX_DROPOUT_RESIDUAL, err));
    DT_TRY(dt_linear_backward(model, &out_proj, &datt, &dproj, &a->att, err));
    DT_TRY(attend_backward(c, &dseen, &qkv_db, &datt, &seen, &args, err));
    if (!dt_model_keeps_norms(config)) /* into dnarrow */
        DT_TRY(norm_1(c, a, x, err));
    DT_TRY(dt_linear_backward(model, &qkv, &dln, &dqkv, &a->ln_1, err));
    DT_TRY(norm_backward(c, DT_GPT2_LN_1_W, &db, &dln, x, &a->ln_1_mean, &a->ln_1_rstd, err));
out:
    return st;
}

dt_status dt_gpt2_block_backward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(mlp_backward(c, err));
    DT_TRY(attention_backward(c, x, err));
out:
    return st;
}
