/* block: a block of Llama, forward and backward: attention, then the perceptron. */
#include "engine/model/llama/model_int.h"
#include "recipes/architecture/decoder.h"

/* --- what a sublayer adds to the residual stream: its projection, normed after it, dropped out, times a factor */

typedef struct sublayer {
    dt_linear linear;    /* the projection */
    int after;           /* parameter of the norm after it */
    dt_tensor out, rstd; /* what this norm reads, and its statistics; no data: in narrow */
    dt_philox_op op;
} sublayer;

static double shift_of(const dt_model *model)
{
    return model->config.llama.norm_plus_one ? 1 : 0;
}

dt_status dt_llama_norm_forward(dt_model *model, dt_tensor *y, dt_tensor *mean, dt_tensor *rstd,
                                const dt_tensor *x, const dt_tensor *w, dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    double eps = model->config.llama.norm_eps;

    if (mean->data != NULL)
        return ops->layernorm_forward(model->device, y, mean, rstd, x, &w[0], &w[1], eps, err);
    return ops->rmsnorm_forward(model->device, y, rstd, x, w, shift_of(model), eps, err);
}

dt_status dt_llama_norm_backward(dt_model *model, dt_tensor *dx, dt_tensor *dw, const dt_tensor *dy,
                                 const dt_tensor *x, const dt_tensor *mean, const dt_tensor *rstd,
                                 const dt_tensor *w, dt_error *err)
{
    const dt_ops *ops = model->device->ops;

    if (mean->data != NULL)
        return ops->layernorm_backward(model->device, dx, &dw[0], &dw[1], dy, x, mean, rstd, w,
                                       err);
    return ops->rmsnorm_backward(model->device, dx, dw, dy, x, rstd, w, shift_of(model), err);
}

/* y = onto + the sublayer's output. y may be onto. */
static dt_status add_output(const dt_block_call *c, sublayer *sub, dt_tensor *y,
                            const dt_tensor *onto, const dt_tensor *x, dt_error *err)
{
    dt_model *model = c->model;
    dt_decoder *state = model->state;
    dt_device *device = model->device;
    double factor = dt_llama_residual_factor(&model->config);
    bool after = dt_llama_norms_after(&model->config);
    dt_tensor *added = &state->narrow, *out = sub->out.data != NULL ? &sub->out : added, none = {0};
    dt_status st = DT_OK;

    if (!after && factor == 1)
        return dt_decoder_project(c, &sub->linear, y, onto, x, sub->op, err);
    DT_TRY(dt_linear_forward(model, &sub->linear, out, x, err));
    if (after)
        DT_TRY(dt_llama_norm_forward(model, added, &none, &sub->rstd, out, &c->w[sub->after], err));
    if (dt_decoder_drops(model, c->dropout)) {
        dt_philox_key key = dt_model_dropout_key(c->dropout, c->layer, sub->op);

        DT_TRY(device->ops->dropout_forward(device, added, added, model->config.decoder.dropout,
                                            &key, err));
    }
    if (factor != 1)
        DT_TRY(device->ops->softcap_forward(device, added, added, factor, 0, err));
    DT_TRY(device->ops->residual_forward(device, y, onto, added, err));
out:
    return st;
}

/* *dy: the gradient of the projection's output, from that of the residual stream: in dstream or narrow. Overwrites
 * dnarrow. */
static dt_status output_grad(const dt_block_call *c, const sublayer *sub, dt_tensor *dy,
                             dt_error *err)
{
    dt_model *model = c->model;
    dt_decoder *state = model->state;
    dt_device *device = model->device;
    double factor = dt_llama_residual_factor(&model->config);
    bool after = dt_llama_norms_after(&model->config);
    dt_tensor *room = after ? &state->dnarrow : &state->narrow;
    const dt_tensor none = {0};
    dt_status st = DT_OK;

    *dy = state->dstream;
    if (dt_decoder_drops(model, c->dropout)) {
        dt_philox_key key = dt_model_dropout_key(c->dropout, c->layer, sub->op);

        DT_TRY(device->ops->dropout_backward(device, room, dy, model->config.decoder.dropout, &key,
                                             err));
        *dy = *room;
    }
    if (factor != 1) {
        DT_TRY(device->ops->softcap_backward(device, room, dy, dy, factor, 0, err));
        *dy = *room;
    }
    if (!after)
        return DT_OK;
    DT_TRY(device->ops->zero(device, &state->narrow, err)); /* the norm's backward adds to it */
    DT_TRY(dt_llama_norm_backward(model, &state->narrow, &c->dw[sub->after], dy, &sub->out, &none,
                                  &sub->rstd, &c->w[sub->after], err));
    *dy = state->narrow;
out:
    return st;
}

/* Returns the input of a sublayer: `normed`, which has the norm of x, or x itself. */
static const dt_tensor *input_of(const dt_block_call *c, const dt_tensor *normed,
                                 const dt_tensor *x)
{
    return dt_llama_norms_before(&c->model->config) ? normed : x;
}

/* dstream += the gradient of x, from that of what the sublayer reads in dnarrow. */
static dt_status input_grad(const dt_block_call *c, const dt_tensor *x, const dt_tensor *mean,
                            const dt_tensor *rstd, int which, dt_error *err)
{
    dt_decoder *state = c->model->state;

    if (!dt_llama_norms_before(&c->model->config))
        return c->model->device->ops->residual_forward(c->model->device, &state->dstream,
                                                       &state->dstream, &state->dnarrow, err);
    return dt_llama_norm_backward(c->model, &state->dstream, &c->dw[which], &state->dnarrow, x,
                                  mean, rstd, &c->w[which], err);
}

/* attention: computes mid = x + dropout(o_proj(attention(q, k, v))), with q k v from norm_1(x), q
 * and k rotated. */

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

static sublayer attention_of(const dt_block_call *c, const dt_llama_block *a)
{
    return (sublayer){
        dt_linear_of(c, DT_LLAMA_O_W, DT_LLAMA_O_W, DT_LLAMA_O_B, DT_LLAMA_O_B, DT_LINEAR_COLUMNS),
        DT_LLAMA_AFTER_1, a->out_1, a->after_1_rstd, DT_PHILOX_DROPOUT_RESIDUAL};
}

/* x (B,T,C), normed -> q k v: one product, or three if keys and values go directly into the cache. */
static dt_status make_qkv(const dt_block_call *c, dt_llama_block *a, const dt_tensor *x,
                          dt_error *err)
{
    dt_linear all = qkv(c);
    dt_linear q = dt_linear_of(c, DT_LLAMA_Q_W, DT_LLAMA_Q_W, DT_LLAMA_Q_B, DT_LLAMA_Q_B, all.cut);
    dt_linear k = dt_linear_of(c, DT_LLAMA_K_W, DT_LLAMA_K_W, DT_LLAMA_K_B, DT_LLAMA_K_B, all.cut);
    dt_linear v = dt_linear_of(c, DT_LLAMA_V_W, DT_LLAMA_V_W, DT_LLAMA_V_B, DT_LLAMA_V_B, all.cut);
    dt_tensor keys, values;
    dt_status st = DT_OK;

    if (a->keys.data == NULL)
        return dt_linear_forward(c->model, &all, &a->qkv, x, err);
    keys = newest(&a->keys, a->qkv.dim[1]);
    values = newest(&a->values, a->qkv.dim[1]);
    DT_TRY(dt_linear_forward(c->model, &q, &a->qkv, x, err));
    DT_TRY(dt_linear_forward(c->model, &k, &keys, x, err));
    DT_TRY(dt_linear_forward(c->model, &v, &values, x, err));
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

/* Queries or keys: their norms' parameters and statistics. */
typedef struct heads_norm {
    int each, whole; /* parameters of the norm of each head, or of all together */
    dt_tensor stats;
} heads_norm;

static heads_norm query_norm(const dt_llama_block *a)
{
    return (heads_norm){DT_LLAMA_Q_NORM, DT_LLAMA_Q_NORM_WHOLE, a->q_rstd};
}

static heads_norm key_norm(const dt_llama_block *a)
{
    return (heads_norm){DT_LLAMA_K_NORM, DT_LLAMA_K_NORM_WHOLE, a->k_rstd};
}

/* Elements of a row of heads on all ranks; ranks that share a head count it each, as their sums do. */
static int64_t whole_width(const dt_model *model, const dt_heads *x)
{
    return x->heads * x->width * dt_tensor_ranks(&model->config.tensor);
}

/* Norm heads, if the model does that, and rotate them. */
static dt_status turn_heads(const dt_block_call *c, const dt_heads *to, const dt_heads *from,
                            heads_norm norm, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_llama_config *own = &model->config.llama;
    dt_tensor angles = dt_llama_angles_rows(model, c->layer), none = {0};
    dt_status st = DT_OK;

    if (!own->qk_norm_whole)
        return device->ops->rotary_forward(device, to, &norm.stats, from, &c->w[norm.each],
                                           shift_of(model), &angles, own->norm_eps, err);
    DT_TRY(device->ops->heads_sum(device, &norm.stats, from, from, &none, 0, err));
    DT_TRY(dt_layer_sum(model, &norm.stats, &norm.stats, err));
    DT_TRY(device->ops->heads_norm_forward(device, to, from, &norm.stats, &c->w[norm.whole],
                                           shift_of(model), whole_width(model, from), own->norm_eps,
                                           err));
    DT_TRY(device->ops->rotary_forward(device, to, &none, to, &none, 0, &angles, 0, err));
out:
    return st;
}

static dt_status turn(const dt_block_call *c, dt_llama_block *a, dt_error *err)
{
    const dt_model_config *config = &c->model->config;
    dt_qkv from = made(config, a), to = seen(config, a);
    dt_status st = DT_OK;

    if (((const dt_decoder *)c->model->state)->growth.each) {
        from.q = to.q = rows_of_one(from.q);
        from.k = to.k = rows_of_one(from.k);
    }
    to.k = dt_heads_last(to.k, from.k.rows);
    DT_TRY(turn_heads(c, &to.q, &from.q, query_norm(a), err));
    DT_TRY(turn_heads(c, &to.k, &from.k, key_norm(a), err));
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
    if (!dt_llama_norms_before(&c->model->config))
        return DT_OK;
    return dt_llama_norm_forward(c->model, &a->norm_1, &a->norm_1_mean, &a->norm_1_rstd, x,
                                 &c->w[DT_LLAMA_NORM_1], err);
}

static dt_attention_args args_of(const dt_block_call *c, dt_philox_key *key)
{
    const dt_model_config *config = &c->model->config;
    dt_attention_args args = dt_decoder_attention_args(c, key);

    args.window = dt_llama_window(config, c->layer);
    args.scale = dt_llama_score_factor(config);
    args.softcap = config->llama.attention_softcap;
    return args;
}

/* Computes the block's mid. */
static dt_status llama_attention_forward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    dt_llama_block *a = dt_llama_block_of(model, c->layer);
    sublayer sub = attention_of(c, a);
    dt_philox_key key = {0};
    dt_attention_args args = args_of(c, &key);
    dt_status st = DT_OK;
    dt_qkv views;

    /* x (B,T,C) -> norm_1 (B,T,C) -> qkv (B,T,Q) -> att (B,T,A) -> mid (B,T,C) */
    DT_TRY(norm_1(c, a, x, err));
    DT_TRY(make_qkv(c, a, input_of(c, &a->norm_1, x), err));
    DT_TRY(turn(c, a, err));
    views = seen(&model->config, a);
    if (((const dt_decoder *)model->state)->growth.each)
        DT_TRY(keep_each(&views, c, a, err));
    DT_TRY(device->ops->attention_forward(device, &a->att, &a->lse, &views, &args, err));
    DT_TRY(add_output(c, &sub, &a->mid, x, &a->att, err));
out:
    return st;
}

/* Convert the gradients of heads, as attention reads them, to those of the product's output. */
static dt_status turn_heads_back(const dt_block_call *c, const dt_heads *d, const dt_heads *from,
                                 heads_norm norm, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_llama_config *own = &model->config.llama;
    dt_tensor angles = dt_llama_angles_rows(model, c->layer), none = {0};
    dt_tensor *products = &((dt_decoder *)model->state)->lasting[DT_LLAMA_PRODUCTS];
    dt_status st = DT_OK;

    if (!own->qk_norm_whole)
        return device->ops->rotary_backward(device, d, &c->dw[norm.each], d, from, &norm.stats,
                                            &c->w[norm.each], shift_of(model), &angles, err);
    DT_TRY(device->ops->rotary_backward(device, d, &none, d, from, &none, &none, 0, &angles, err));
    DT_TRY(
        device->ops->heads_sum(device, products, d, from, &c->w[norm.whole], shift_of(model), err));
    DT_TRY(dt_layer_sum(model, products, products, err));
    DT_TRY(device->ops->heads_norm_backward(device, d, &c->dw[norm.whole], d, from, &norm.stats,
                                            products, &c->w[norm.whole], shift_of(model),
                                            whole_width(model, from), own->norm_eps, err));
out:
    return st;
}

static dt_status turn_back(const dt_block_call *c, const dt_llama_block *a, const dt_qkv *dqkv,
                           dt_error *err)
{
    dt_qkv from = made(&c->model->config, a);
    dt_status st = DT_OK;

    DT_TRY(turn_heads_back(c, &dqkv->q, &from.q, query_norm(a), err));
    DT_TRY(turn_heads_back(c, &dqkv->k, &from.k, key_norm(a), err));
out:
    return st;
}

/* Turns state->dstream from the gradient of mid into the gradient of x. dstream (B,T,C) -> dproj (B,T,C) ->
 * datt (B,T,A) -> dqkv (B,T,Q) -> dnorm_1 (B,T,C), added to dstream */
static dt_status llama_attention_backward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    const dt_model_config *config = &model->config;
    dt_decoder *state = model->state;
    dt_llama_block *a = dt_llama_block_of(model, c->layer);
    sublayer sub = attention_of(c, a);
    dt_linear all = qkv(c);
    dt_tensor datt = state->dnarrow, dqkv = state->wide, dproj;
    dt_philox_key key = {0};
    dt_attention_args args = args_of(c, &key);
    dt_qkv views = seen(config, a), dviews;
    dt_status st = DT_OK;

    datt.dim[2] = dt_llama_q_width(config);
    dqkv.dim[2] = dt_llama_qkv_width(config);
    dviews = views_of(config, &dqkv, &dqkv);
    DT_TRY(output_grad(c, &sub, &dproj, err));
    DT_TRY(dt_linear_backward(model, &sub.linear, &datt, &dproj, &a->att, err));
    if (config->recompute == DT_RECOMPUTE_SELECTIVE && config->llama.qk_norm)
        /* a later block has overwritten the rotated queries and keys */
        DT_TRY(turn(c, a, err));
    DT_TRY(ops->attention_backward(device, &dviews, &datt, &views, &a->att, &a->lse, &args, err));
    DT_TRY(turn_back(c, a, &dviews, err));
    if (!dt_model_keeps_norms(config)) /* into dnarrow */
        DT_TRY(norm_1(c, a, x, err));
    DT_TRY(
        dt_linear_backward(model, &all, &state->dnarrow, &dqkv, input_of(c, &a->norm_1, x), err));
    DT_TRY(input_grad(c, x, &a->norm_1_mean, &a->norm_1_rstd, DT_LLAMA_NORM_1, err));
out:
    return st;
}

static dt_linear gate_up(const dt_block_call *c)
{
    return dt_linear_of(c, DT_LLAMA_GATE_W, DT_LLAMA_UP_W, DT_LLAMA_GATE_B, DT_LLAMA_UP_B,
                        DT_LINEAR_ROWS);
}

static sublayer perceptron_of(const dt_block_call *c, const dt_llama_block *a)
{
    return (sublayer){dt_linear_of(c, DT_LLAMA_DOWN_W, DT_LLAMA_DOWN_W, DT_LLAMA_DOWN_B,
                                   DT_LLAMA_DOWN_B, DT_LINEAR_COLUMNS),
                      DT_LLAMA_AFTER_2, a->out_2, a->after_2_rstd, DT_PHILOX_DROPOUT_MLP};
}

static dt_status norm_2(const dt_block_call *c, dt_llama_block *a, dt_error *err)
{
    if (!dt_llama_norms_before(&c->model->config))
        return DT_OK;
    return dt_llama_norm_forward(c->model, &a->norm_2, &a->norm_2_mean, &a->norm_2_rstd, &a->mid,
                                 &c->w[DT_LLAMA_NORM_2], err);
}

/* y = mid + the perceptron's output: gate_up (B,T,2F) -> act (B,T,F) -> y (B,T,C) */
static dt_status finish(const dt_block_call *c, dt_tensor *y, dt_error *err)
{
    dt_device *device = c->model->device;
    dt_llama_block *a = dt_llama_block_of(c->model, c->layer);
    sublayer sub = perceptron_of(c, a);
    dt_status st = DT_OK;

    DT_TRY(
        device->ops->gate_forward(device, &a->act, &a->gate_up, c->model->config.llama.gate, err));
    DT_TRY(add_output(c, &sub, y, &a->mid, &a->act, err));
out:
    return st;
}

/* Up to gate_up. */
static dt_status start(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_llama_block *a = dt_llama_block_of(c->model, c->layer);
    dt_linear layer = gate_up(c);
    dt_status st = DT_OK;

    DT_TRY(llama_attention_forward(c, x, err));
    /* mid (B,T,C) -> norm_2 (B,T,C) -> gate_up (B,T,2F) */
    DT_TRY(norm_2(c, a, err));
    DT_TRY(dt_linear_forward(c->model, &layer, &a->gate_up, input_of(c, &a->norm_2, &a->mid), err));
out:
    return st;
}

/* Computes every product that backward reads: the last one too if a norm reads it. */
dt_status dt_llama_block_products(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_decoder *state = c->model->state;
    dt_status st = DT_OK;

    DT_TRY(start(c, x, err));
    if (dt_llama_norms_after(&c->model->config))
        DT_TRY(finish(c, &state->narrow, err));
out:
    return st;
}

dt_status dt_llama_block_forward(const dt_block_call *c, dt_tensor *y, const dt_tensor *x,
                                 dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(start(c, x, err));
    DT_TRY(finish(c, y, err));
out:
    return st;
}

/* out = mid + dropout(down(f(gate) up)), gate and up of norm_2(mid):
 * dstream (B,T,C) -> dproj (B,T,C) -> dact (B,T,F), overwrites act -> dgate_up (B,T,2F), overwrites
 * gate_up -> dnorm_2 (B,T,C), added to dstream */
static dt_status mlp_backward(const dt_block_call *c, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_decoder *state = model->state;
    dt_llama_block *a = dt_llama_block_of(model, c->layer);
    dt_gate_kind gate = model->config.llama.gate;
    sublayer sub = perceptron_of(c, a);
    dt_linear up = gate_up(c);
    dt_tensor dproj;
    dt_status st = DT_OK;

    DT_TRY(output_grad(c, &sub, &dproj, err));
    if (!dt_model_keeps_all(&model->config))
        DT_TRY(ops->gate_forward(device, &a->act, &a->gate_up, gate, err));
    DT_TRY(dt_linear_backward(model, &sub.linear, &a->act, &dproj, &a->act, err));
    DT_TRY(ops->gate_backward(device, &a->gate_up, &a->act, &a->gate_up, gate, err));
    if (!dt_model_keeps_norms(&model->config)) /* into dnarrow */
        DT_TRY(norm_2(c, a, err));
    DT_TRY(dt_linear_backward(model, &up, &state->dnarrow, &a->gate_up,
                              input_of(c, &a->norm_2, &a->mid), err));
    DT_TRY(input_grad(c, &a->mid, &a->norm_2_mean, &a->norm_2_rstd, DT_LLAMA_NORM_2, err));
out:
    return st;
}

dt_status dt_llama_block_backward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(mlp_backward(c, err));
    DT_TRY(llama_attention_backward(c, x, err));
out:
    return st;
}
