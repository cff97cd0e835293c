/* attention: computes mid = x + dropout(o_proj(attention(q, k, v))), with q k v from norm_1(x), q
 * and k rotated. */
#include "engine/model/llama/model_int.h"
#include "recipes/architecture/decoder.h"

/* Views of queries, keys and values in x (B,T,columns), in this order. The values are in v (B,T,Q)
 * if x has none. */
static dt_qkv views_of(const dt_model_config *config, const dt_tensor *x, const dt_tensor *v)
{
    int64_t D = config->llama.head_width, G = dt_llama_kv_heads(config);
    int64_t A = dt_llama_q_width(config);

    return (dt_qkv){dt_heads_of(x, 0, dt_decoder_heads(config), D), dt_heads_of(x, A, G, D),
                    dt_heads_of(v, A + dt_llama_kv_width(config), G, D)};
}

/* Views of q k v before norm and rotation; under incremental decoding, of the new tokens only. */
static dt_qkv made(const dt_model_config *config, const dt_llama_block *a)
{
    int64_t D = config->llama.head_width, G = dt_llama_kv_heads(config), T = a->qkv.dim[1];

    if (a->keys.data == NULL)
        return views_of(config, &a->qkv, &a->qkv);
    return (dt_qkv){dt_heads_of(&a->qkv, 0, dt_decoder_heads(config), D),
                    dt_heads_last(dt_heads_of(&a->keys, 0, G, D), T),
                    dt_heads_last(dt_heads_of(&a->values, 0, G, D), T)};
}

/* Views of q k v as attention reads them: after norm and rotation. */
static dt_qkv seen(const dt_model_config *config, const dt_llama_block *a)
{
    int64_t D = config->llama.head_width, G = dt_llama_kv_heads(config);

    if (a->keys.data == NULL)
        return views_of(config, a->turned.data != NULL ? &a->turned : &a->qkv, &a->qkv);
    return (dt_qkv){dt_heads_of(&a->qkv, 0, dt_decoder_heads(config), D),
                    dt_heads_of(&a->keys, 0, G, D), dt_heads_of(&a->values, 0, G, D)};
}

/* The last `rows` rows of a tensor (1,rows,columns). */
static dt_tensor newest(const dt_tensor *x, int64_t rows)
{
    unsigned char *data = x->data;

    data += (size_t)((x->dim[1] - rows) * x->dim[2]) * dt_dtype_bytes(x->dtype);
    return dt_tensor_3d(data, x->dtype, 1, rows, x->dim[2]);
}

/* q, k and v as one layer. */
static dt_linear qkv(const dt_block_call *c)
{
    return dt_linear_of(c, DT_LLAMA_Q_W, DT_LLAMA_V_W, DT_LLAMA_Q_B, DT_LLAMA_V_B, DT_LINEAR_ROWS);
}

static dt_linear out_proj(const dt_block_call *c)
{
    return dt_linear_of(c, DT_LLAMA_O_W, DT_LLAMA_O_W, DT_LLAMA_O_B, DT_LLAMA_O_B,
                        DT_LINEAR_COLUMNS);
}

/* norm_1 (B,T,C) -> q k v: one product, or three if keys and values go directly into the cache. */
static dt_status make_qkv(const dt_block_call *c, dt_llama_block *a, dt_error *err)
{
    dt_linear all = qkv(c);
    dt_linear q = dt_linear_of(c, DT_LLAMA_Q_W, DT_LLAMA_Q_W, DT_LLAMA_Q_B, DT_LLAMA_Q_B, all.cut);
    dt_linear k = dt_linear_of(c, DT_LLAMA_K_W, DT_LLAMA_K_W, DT_LLAMA_K_B, DT_LLAMA_K_B, all.cut);
    dt_linear v = dt_linear_of(c, DT_LLAMA_V_W, DT_LLAMA_V_W, DT_LLAMA_V_B, DT_LLAMA_V_B, all.cut);
    dt_tensor keys, values;
    dt_status st = DT_OK;

    if (a->keys.data == NULL)
        return dt_linear_forward(c->model, &all, &a->qkv, &a->norm_1, err);
    keys = newest(&a->keys, a->qkv.dim[1]);
    values = newest(&a->values, a->qkv.dim[1]);
    DT_TRY(dt_linear_forward(c->model, &q, &a->qkv, &a->norm_1, err));
    DT_TRY(dt_linear_forward(c->model, &k, &keys, &a->norm_1, err));
    DT_TRY(dt_linear_forward(c->model, &v, &values, &a->norm_1, err));
out:
    return st;
}

/* Views the single row of each sequence as the rows of one sequence. */
static dt_heads rows_of_one(dt_heads h)
{
    h.rows = h.batch;
    h.row_stride = h.sequence_stride;
    h.batch = 1;
    return h;
}

/* Norm queries and keys, if the model does that, and rotate them. */
static dt_status turn(const dt_block_call *c, dt_llama_block *a, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_model_config *config = &model->config;
    dt_tensor angles = dt_llama_angles(model->state);
    dt_qkv from = made(config, a), to = seen(config, a);
    dt_status st = DT_OK;

    if (((const dt_decoder *)model->state)->growth.each) {
        from.q = to.q = rows_of_one(from.q);
        from.k = to.k = rows_of_one(from.k);
    }
    to.k = dt_heads_last(to.k, from.k.rows);
    DT_TRY(device->ops->rotary_forward(device, &to.q, &a->q_rstd, &from.q, &c->w[DT_LLAMA_Q_NORM],
                                       &angles, config->llama.norm_eps, err));
    DT_TRY(device->ops->rotary_forward(device, &to.k, &a->k_rstd, &from.k, &c->w[DT_LLAMA_K_NORM],
                                       &angles, config->llama.norm_eps, err));
out:
    return st;
}

/* Append the rotated keys and the values of each sequence to the cache, and view the cache for
 * attention. */
static dt_status keep_each(dt_qkv *views, const dt_block_call *c, const dt_llama_block *a,
                           dt_error *err)
{
    dt_model *model = c->model;
    int layer = c->layer;
    const dt_model_config *config = &model->config;
    int64_t A = dt_llama_q_width(config), D = config->llama.head_width,
            G = dt_llama_kv_heads(config);
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_keep(model, DT_LLAMA_KEPT_KEYS, layer, &a->qkv, A, err));
    DT_TRY(dt_decoder_keep(model, DT_LLAMA_KEPT_VALUES, layer, &a->qkv,
                           A + dt_llama_kv_width(config), err));
    views->k = dt_decoder_kept_heads(model, DT_LLAMA_KEPT_KEYS, layer, 0, G, D);
    views->v = dt_decoder_kept_heads(model, DT_LLAMA_KEPT_VALUES, layer, 0, G, D);
out:
    return st;
}

static dt_status norm_1(const dt_block_call *c, dt_llama_block *a, const dt_tensor *x,
                        dt_error *err)
{
    return c->model->device->ops->rmsnorm_forward(c->model->device, &a->norm_1, &a->norm_1_rstd, x,
                                                  &c->w[DT_LLAMA_NORM_1],
                                                  c->model->config.llama.norm_eps, err);
}

dt_status dt_llama_attention_forward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    dt_llama_block *a = dt_llama_block_of(model, c->layer);
    dt_linear proj = out_proj(c);
    dt_philox_key key = {0};
    dt_attention_args args = dt_decoder_attention_args(c, &key);
    dt_status st = DT_OK;
    dt_qkv views;

    /* x (B,T,C) -> norm_1 (B,T,C) -> qkv (B,T,Q) -> att (B,T,A) -> mid (B,T,C) */
    DT_TRY(norm_1(c, a, x, err));
    DT_TRY(make_qkv(c, a, err));
    DT_TRY(turn(c, a, err));
    views = seen(&model->config, a);
    if (((const dt_decoder *)model->state)->growth.each)
        DT_TRY(keep_each(&views, c, a, err));
    DT_TRY(device->ops->attention_forward(device, &a->att, &a->lse, &views, &args, err));
    DT_TRY(dt_decoder_project(c, &proj, &a->mid, x, &a->att, DT_PHILOX_DROPOUT_RESIDUAL, err));
out:
    return st;
}

/* Convert the gradients of queries and keys, as attention reads them, to those of the product's
 * output. */
static dt_status turn_back(const dt_block_call *c, const dt_llama_block *a, const dt_qkv *dqkv,
                           dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    dt_tensor angles = dt_llama_angles(model->state);
    dt_qkv from = made(&model->config, a);
    dt_status st = DT_OK;

    DT_TRY(device->ops->rotary_backward(device, &dqkv->q, &c->dw[DT_LLAMA_Q_NORM], &dqkv->q,
                                        &from.q, &a->q_rstd, &c->w[DT_LLAMA_Q_NORM], &angles, err));
    DT_TRY(device->ops->rotary_backward(device, &dqkv->k, &c->dw[DT_LLAMA_K_NORM], &dqkv->k,
                                        &from.k, &a->k_rstd, &c->w[DT_LLAMA_K_NORM], &angles, err));
out:
    return st;
}

/* dstream (B,T,C) -> dproj (B,T,C) -> datt (B,T,A) -> dqkv (B,T,Q) -> dnorm_1 (B,T,C), added to dstream */
dt_status dt_llama_attention_backward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    const dt_model_config *config = &model->config;
    dt_decoder *state = model->state;
    dt_llama_block *a = dt_llama_block_of(model, c->layer);
    dt_linear all = qkv(c), proj = out_proj(c);
    dt_tensor datt = state->dnarrow, dqkv = state->wide, dproj;
    dt_philox_key key = {0};
    dt_attention_args args = dt_decoder_attention_args(c, &key);
    dt_qkv views = seen(config, a), dviews;
    dt_status st = DT_OK;

    datt.dim[2] = dt_llama_q_width(config);
    dqkv.dim[2] = dt_llama_qkv_width(config);
    dviews = views_of(config, &dqkv, &dqkv);
    DT_TRY(dt_decoder_project_grad(c, &dproj, DT_PHILOX_DROPOUT_RESIDUAL, err));
    DT_TRY(dt_linear_backward(model, &proj, &datt, &dproj, &a->att, err));
    if (config->recompute == DT_RECOMPUTE_SELECTIVE && config->llama.qk_norm)
        /* a later block has overwritten the rotated queries and keys */
        DT_TRY(turn(c, a, err));
    DT_TRY(ops->attention_backward(device, &dviews, &datt, &views, &a->att, &a->lse, &args, err));
    DT_TRY(turn_back(c, a, &dviews, err));
    if (config->recompute != DT_RECOMPUTE_NONE) /* into dnarrow */
        DT_TRY(norm_1(c, a, x, err));
    DT_TRY(dt_linear_backward(model, &all, &state->dnarrow, &dqkv, &a->norm_1, err));
    DT_TRY(ops->rmsnorm_backward(device, &state->dstream, &c->dw[DT_LLAMA_NORM_1], &state->dnarrow,
                                 x, &a->norm_1_rstd, &c->w[DT_LLAMA_NORM_1], err));
out:
    return st;
}
