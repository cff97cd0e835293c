/* attention: computes self attention, and the decoder's cross attention to the encoder. */
#include "engine/model/transformer/model_int.h"
#include "recipes/architecture/decoder.h"

const dt_tensor *dt_transformer_encoded(const dt_model *model)
{
    const dt_transformer_state *state = model->state;

    return dt_transformer_end_of(model, &state->encoder);
}

/* Whether the pass adds a token to the cached hypotheses. */
static bool grows(const dt_transformer_call *c)
{
    const dt_transformer_state *state = c->model->state;

    return c->side->decoder && state->growth.decoding;
}

/* Mask and dropout arguments: attention to the source skips padding; self attention in the decoder
 * is causal. */
static dt_attention_args args_of(const dt_transformer_call *c, bool cross, dt_philox_key *key)
{
    const dt_transformer_state *state = c->model->state;
    dt_attention_args args = {.mask = DT_MASK_CAUSAL, .key = key};

    if (grows(c)) { /* attends to the cached rows, as many as each sequence has */
        args.mask = DT_MASK_LENGTHS;
        args.key_lengths = cross ? state->growth.sources : state->growth.lengths;
    } else if (cross || !c->side->decoder) {
        args.mask = DT_MASK_LENGTHS;
        args.key_lengths = state->lengths;
    }
    if (c->dropout == NULL || c->model->config.decoder.attention_dropout == 0)
        return args;
    *key = dt_model_dropout_key(c->dropout, c->side->first_layer + c->layer,
                                cross ? DT_PHILOX_DROPOUT_CROSS_ATTENTION
                                      : DT_PHILOX_DROPOUT_ATTENTION);
    args.heads = c->model->config.decoder.heads;
    args.first_head = c->model->config.tensor.rank * dt_decoder_heads(&c->model->config);
    args.p = c->model->config.decoder.attention_dropout;
    return args;
}

/* Views of queries, keys and values: q (B,T,A), kv (B,S,2A). */
static dt_qkv cross_views(const dt_model *model, const dt_tensor *q, const dt_tensor *kv)
{
    int64_t heads = dt_decoder_heads(&model->config), A = dt_transformer_attended(&model->config);

    return (dt_qkv){dt_heads_of(q, 0, heads, A / heads), dt_heads_of(kv, 0, heads, A / heads),
                    dt_heads_of(kv, A, heads, A / heads)};
}

/* Memory of the gradient of the branch's input, and before it of attention's output. */
static dt_tensor read_gradient(const dt_transformer_call *c, int64_t columns)
{
    const dt_transformer_state *state = c->model->state;

    return dt_transformer_scratch(c->model, c->side, state->dread, columns);
}

/* --- linear layers of a block */

static dt_linear qkv(dt_transformer_call *c)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_Q_W, DT_TRANSFORMER_V_W, DT_TRANSFORMER_Q_B,
                                 DT_TRANSFORMER_V_B, DT_LINEAR_ROWS);
}

static dt_linear out_proj(dt_transformer_call *c)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_OUT_W, DT_TRANSFORMER_OUT_W,
                                 DT_TRANSFORMER_OUT_B, DT_TRANSFORMER_OUT_B, DT_LINEAR_COLUMNS);
}

static dt_linear cross_q(dt_transformer_call *c)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_CROSS_Q_W, DT_TRANSFORMER_CROSS_Q_W,
                                 DT_TRANSFORMER_CROSS_Q_B, DT_TRANSFORMER_CROSS_Q_B,
                                 DT_LINEAR_ROWS);
}

static dt_linear cross_kv(dt_transformer_call *c, dt_linear_cut cut)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_CROSS_K_W, DT_TRANSFORMER_CROSS_V_W,
                                 DT_TRANSFORMER_CROSS_K_B, DT_TRANSFORMER_CROSS_V_B, cut);
}

static dt_linear cross_out(dt_transformer_call *c)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_CROSS_OUT_W, DT_TRANSFORMER_CROSS_OUT_W,
                                 DT_TRANSFORMER_CROSS_OUT_B, DT_TRANSFORMER_CROSS_OUT_B,
                                 DT_LINEAR_COLUMNS);
}

/* --- self attention */

/* x (B,rows,C) -> qkv (B,rows,3A) -> att (B,rows,A) -> y (B,rows,C) */
dt_status dt_transformer_attention_forward(dt_transformer_call *c, dt_tensor *y, const dt_tensor *x,
                                           dt_error *err)
{
    dt_device *device = c->model->device;
    const dt_ops *ops = device->ops;
    dt_transformer_block *a = c->block;
    dt_linear in = qkv(c), proj = out_proj(c);
    dt_qkv views = dt_qkv_packed(&a->qkv, dt_decoder_heads(&c->model->config));
    dt_philox_key key = {0};
    dt_attention_args args = args_of(c, false, &key);
    dt_status st = DT_OK;

    DT_TRY(dt_linear_forward(c->model, &in, &a->qkv, x, err));
    if (grows(c))
        DT_TRY(dt_transformer_grow(c, &views, err));
    DT_TRY(ops->attention_forward(device, &a->att, &a->lse, &views, &args, err));
    DT_TRY(dt_linear_forward(c->model, &proj, y, &a->att, err));
out:
    return st;
}

/* dy (B,rows,C) -> datt (B,rows,A) -> dqkv (B,rows,3A) -> dx (B,rows,C) */
dt_status dt_transformer_attention_backward(dt_transformer_call *c, const dt_tensor *dy,
                                            const dt_tensor *x, dt_error *err)
{
    const dt_transformer_state *state = c->model->state;
    dt_transformer_block *a = c->block;
    int64_t heads = dt_decoder_heads(&c->model->config);
    int64_t A = dt_transformer_attended(&c->model->config), C = c->model->config.decoder.embed;
    dt_tensor dqkv = dt_transformer_scratch(c->model, c->side, state->wide, 3 * A);
    dt_tensor datt = read_gradient(c, A), dx = read_gradient(c, C);
    dt_linear in = qkv(c), proj = out_proj(c);
    dt_qkv views = dt_qkv_packed(&a->qkv, heads), dviews = dt_qkv_packed(&dqkv, heads);
    dt_philox_key key = {0};
    dt_attention_args args = args_of(c, false, &key);
    dt_device *device = c->model->device;
    dt_status st = DT_OK;

    DT_TRY(dt_linear_backward(c->model, &proj, &datt, dy, &a->att, err));
    DT_TRY(device->ops->attention_backward(device, &dviews, &datt, &views, &a->att, &a->lse, &args,
                                           err));
    DT_TRY(dt_linear_backward(c->model, &in, &dx, &dqkv, x, err));
out:
    return st;
}

/* --- cross attention */

/* x (B,T,C) -> q (B,T,A); encoded (B,S,C) -> kv (B,S,2A); -> att (B,T,A) -> y (B,T,C) */
dt_status dt_transformer_cross_forward(dt_transformer_call *c, dt_tensor *y, const dt_tensor *x,
                                       dt_error *err)
{
    dt_device *device = c->model->device;
    const dt_ops *ops = device->ops;
    dt_transformer_block *a = c->block;
    dt_linear q = cross_q(c), kv = cross_kv(c, DT_LINEAR_ROWS), proj = cross_out(c);
    dt_qkv views = cross_views(c->model, &a->cross_q, &a->cross_kv);
    dt_tensor att = a->cross_att;
    dt_philox_key key = {0};
    dt_attention_args args = args_of(c, true, &key);
    dt_status st = DT_OK;

    DT_TRY(dt_linear_forward(c->model, &q, &a->cross_q, x, err));
    if (grows(c))
        dt_transformer_view_sources(c, &views, &att);
    else
        DT_TRY(
            dt_linear_forward(c->model, &kv, &a->cross_kv, dt_transformer_encoded(c->model), err));
    DT_TRY(ops->attention_forward(device, &att, &a->cross_lse, &views, &args, err));
    DT_TRY(dt_linear_forward(c->model, &proj, y, &a->cross_att, err));
out:
    return st;
}

/* Gradients from keys and values: of their weights, and of the encoder's output, whose terms the blocks add up in
 * dencoded_terms if ranks divide layers. */
static dt_status keys_backward(dt_transformer_call *c, const dt_tensor *dkv, dt_error *err)
{
    dt_transformer_state *state = c->model->state;
    dt_device *device = c->model->device;
    dt_linear kv = cross_kv(c, DT_LINEAR_WHOLE); /* its sums over ranks are below */
    bool first = c->layer == c->side->layers - 1;
    dt_tensor part = dt_transformer_scratch(c->model, &state->encoder, state->dpart,
                                            c->model->config.decoder.embed);
    dt_tensor term = dt_layer_term(c->model, &part, &state->terms);
    dt_tensor sum = dt_layer_term(c->model, &state->dencoded, &state->dencoded_terms);
    dt_status st = DT_OK;

    DT_TRY(dt_linear_backward(c->model, &kv, first ? &sum : &term, dkv,
                              dt_transformer_encoded(c->model), err));
    if (!first)
        DT_TRY(device->ops->residual_forward(device, &sum, &sum, &term, err));
    if (c->layer == 0)
        DT_TRY(dt_layer_sum(c->model, &state->dencoded, &sum, err));
out:
    return st;
}

/* dy (B,T,C) -> datt (B,T,A) -> dq (B,T,A) -> dx (B,T,C), and dkv (B,S,2A) */
dt_status dt_transformer_cross_backward(dt_transformer_call *c, const dt_tensor *dy,
                                        const dt_tensor *x, dt_error *err)
{
    const dt_transformer_state *state = c->model->state;
    dt_transformer_block *a = c->block;
    int64_t A = dt_transformer_attended(&c->model->config), C = c->model->config.decoder.embed;
    dt_tensor dq = dt_transformer_scratch(c->model, c->side, state->wide, A), dkv;
    dt_tensor datt = read_gradient(c, A), dx = read_gradient(c, C);
    dt_qkv views = cross_views(c->model, &a->cross_q, &a->cross_kv), dviews;
    dt_philox_key key = {0};
    dt_attention_args args = args_of(c, true, &key);
    dt_linear q = cross_q(c), proj = cross_out(c);
    dt_device *device = c->model->device;
    dt_status st = DT_OK;

    dkv = dt_transformer_scratch(c->model, &state->encoder,
                                 (unsigned char *)state->wide + state->wide_gap, 2 * A);
    dviews = cross_views(c->model, &dq, &dkv);
    DT_TRY(dt_linear_backward(c->model, &proj, &datt, dy, &a->cross_att, err));
    DT_TRY(device->ops->attention_backward(device, &dviews, &datt, &views, &a->cross_att,
                                           &a->cross_lse, &args, err));
    DT_TRY(dt_linear_backward(c->model, &q, &dx, &dq, x, err));
    DT_TRY(keys_backward(c, &dkv, err));
out:
    return st;
}
