/* block: a block, forward and backward: the perceptron, a branch with its norm, dropout and residual sum,
 * and the branches in turn. */
#include "engine/model/transformer/model_int.h"

/* perceptron: computes fc2(activation(fc1(x))). */

/* The activation's output, later overwritten by its gradient; in scratch unless the block keeps it. */
static dt_tensor inside(const dt_transformer_call *c)
{
    const dt_transformer_state *state = c->model->state;

    if (c->block->active.data != NULL)
        return c->block->active;
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
static dt_status transformer_perceptron_forward(dt_transformer_call *c, dt_tensor *y,
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

static dt_status transformer_perceptron_backward(dt_transformer_call *c, const dt_tensor *dy,
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

    if (!dt_model_keeps_all(&c->model->config))
        DT_TRY(ops->activation_forward(device, &active, &c->block->fc, kind, err));
    DT_TRY(dt_linear_backward(c->model, &proj, &dfc, dy, &active, err));
    DT_TRY(ops->activation_backward(device, &dfc, &dfc, &c->block->fc, kind, err));
    DT_TRY(dt_linear_backward(c->model, &in, &dx, &dfc, x, err));
out:
    return st;
}

/* sublayer: computes a branch with its norm, dropout and residual sum, in pre-norm and post-norm
 * order. */

/* A branch: its passes, the indices of its norm's parameters, and the op in its dropout key. */
typedef struct branch {
    dt_status (*forward)(dt_transformer_call *c, dt_tensor *y, const dt_tensor *x, dt_error *err);
    dt_status (*backward)(dt_transformer_call *c, const dt_tensor *dy, const dt_tensor *x,
                          dt_error *err);
    int norm_w, norm_b;
    dt_philox_op op;
} branch;

static const branch branches[DT_TRANSFORMER_BRANCHES] = {
    [DT_TRANSFORMER_SELF] = {dt_transformer_attention_forward, dt_transformer_attention_backward,
                             DT_TRANSFORMER_SELF_NORM_W, DT_TRANSFORMER_SELF_NORM_B,
                             DT_PHILOX_DROPOUT_RESIDUAL},
    [DT_TRANSFORMER_CROSS] = {dt_transformer_cross_forward, dt_transformer_cross_backward,
                              DT_TRANSFORMER_CROSS_NORM_W, DT_TRANSFORMER_CROSS_NORM_B,
                              DT_PHILOX_DROPOUT_CROSS_RESIDUAL},
    [DT_TRANSFORMER_PERCEPTRON] = {transformer_perceptron_forward, transformer_perceptron_backward,
                                   DT_TRANSFORMER_FFN_NORM_W, DT_TRANSFORMER_FFN_NORM_B,
                                   DT_PHILOX_DROPOUT_MLP},
};

bool dt_transformer_drops(const dt_model *model, const dt_batch *dropout)
{
    return dropout != NULL && model->config.decoder.dropout > 0;
}

dt_status dt_transformer_drop(dt_model *model, dt_tensor *y, const dt_tensor *x,
                              const dt_batch *dropout, int layer, dt_philox_op op, bool backward,
                              dt_error *err)
{
    dt_philox_key key = dt_model_dropout_key(dropout, layer, op);
    const dt_ops *ops = model->device->ops;

    return (backward ? ops->dropout_backward : ops->dropout_forward)(
        model->device, y, x, model->config.decoder.dropout, &key, err);
}

/* The previous sublayer; the first has none. */
static dt_transformer_sublayer *before(const dt_transformer_call *c, dt_transformer_branch which)
{
    if (which == DT_TRANSFORMER_PERCEPTRON && c->side->decoder)
        return &c->block->sub[DT_TRANSFORMER_CROSS];
    return &c->block->sub[DT_TRANSFORMER_SELF];
}

/* The residual stream before the sublayer. */
static const dt_tensor *stream_before(const dt_transformer_call *c, dt_transformer_branch which)
{
    if (which == DT_TRANSFORMER_SELF)
        return &c->side->stream[c->layer];
    return dt_transformer_is_pre(c->model) ? &before(c, which)->sum : &before(c, which)->normed;
}

static dt_status norm(dt_transformer_call *c, dt_transformer_branch which, const dt_tensor *x,
                      dt_error *err)
{
    dt_transformer_sublayer *sub = &c->block->sub[which];
    dt_device *device = c->model->device;

    return device->ops->layernorm_forward(
        device, &sub->normed, &sub->mean, &sub->rstd, x, &c->w[branches[which].norm_w],
        &c->w[branches[which].norm_b], DT_TRANSFORMER_NORM_EPS, err);
}

/* Backward of the sublayer's norm; adds the result to *dx. */
static dt_status norm_backward(dt_transformer_call *c, dt_transformer_branch which, dt_tensor *dx,
                               const dt_tensor *dy, const dt_tensor *x, dt_error *err)
{
    dt_transformer_sublayer *sub = &c->block->sub[which];
    dt_device *device = c->model->device;

    return device->ops->layernorm_backward(device, dx, &c->dw[branches[which].norm_w],
                                           &c->dw[branches[which].norm_b], dy, x, &sub->mean,
                                           &sub->rstd, &c->w[branches[which].norm_w], err);
}

static dt_tensor narrow_of(const dt_transformer_call *c)
{
    const dt_transformer_state *state = c->model->state;

    return dt_transformer_scratch(c->model, c->side, state->narrow, c->model->config.decoder.embed);
}

/* again: recompute for backward, into the tensors that blocks share */
static dt_status transformer_sublayer_forward(dt_transformer_call *c, dt_transformer_branch which,
                                              bool again, dt_error *err)
{
    dt_transformer_sublayer *sub = &c->block->sub[which];
    const dt_tensor *x = stream_before(c, which);
    bool pre = dt_transformer_is_pre(c->model);
    dt_tensor y = narrow_of(c);
    dt_device *device = c->model->device;
    dt_status st = DT_OK;

    if (pre)
        DT_TRY(norm(c, which, x, err));
    if (pre && again &&
        which == DT_TRANSFORMER_PERCEPTRON) /* sum is not needed: it is in the kept stream */
        return branches[which].forward(c, NULL, &sub->normed, err);
    DT_TRY(branches[which].forward(c, &y, pre ? &sub->normed : x, err));
    if (dt_transformer_drops(c->model, c->dropout))
        DT_TRY(dt_transformer_drop(c->model, &y, &y, c->dropout, c->side->first_layer + c->layer,
                                   branches[which].op, false, err));
    DT_TRY(device->ops->residual_forward(device, &sub->sum, x, &y, err));
    if (!pre)
        DT_TRY(norm(c, which, &sub->sum, err));
out:
    return st;
}

/* The gradient of the branch's output: d, passed through the dropout. */
static dt_status branch_gradient(dt_transformer_call *c, dt_transformer_branch which,
                                 dt_tensor *out, const dt_tensor *d, dt_error *err)
{
    *out = *d;
    if (!dt_transformer_drops(c->model, c->dropout))
        return DT_OK;
    *out = narrow_of(c);
    return dt_transformer_drop(c->model, out, d, c->dropout, c->side->first_layer + c->layer,
                               branches[which].op, true, err);
}

/* Backward of sum = x + dropout(branch(norm(x))). */
static dt_status pre_backward(dt_transformer_call *c, dt_transformer_branch which, dt_tensor *d,
                              dt_error *err)
{
    const dt_transformer_state *state = c->model->state;
    const dt_tensor *x = stream_before(c, which);
    dt_tensor dbranch, dread = dt_transformer_scratch(c->model, c->side, state->dread,
                                                      c->model->config.decoder.embed);
    dt_status st = DT_OK;

    if (!dt_model_keeps_norms(&c->model->config))
        DT_TRY(norm(c, which, x, err));
    DT_TRY(branch_gradient(c, which, &dbranch, d, err));
    DT_TRY(branches[which].backward(c, &dbranch, &c->block->sub[which].normed, err));
    DT_TRY(norm_backward(c, which, d, &dread, x, err));
out:
    return st;
}

/* Recompute the previous norm, whose output this sublayer reads; the first sublayer reads the kept
 * stream. */
static dt_status norm_before_again(dt_transformer_call *c, dt_transformer_branch which,
                                   dt_error *err)
{
    dt_transformer_branch previous = which == DT_TRANSFORMER_PERCEPTRON && c->side->decoder
                                         ? DT_TRANSFORMER_CROSS
                                         : DT_TRANSFORMER_SELF;

    if (which == DT_TRANSFORMER_SELF || dt_model_keeps_norms(&c->model->config))
        return DT_OK;
    return norm(c, previous, &c->block->sub[previous].sum, err);
}

/* Backward of out = norm(sum), sum = x + dropout(branch(x)). */
static dt_status post_backward(dt_transformer_call *c, dt_transformer_branch which, dt_tensor *d,
                               dt_error *err)
{
    const dt_transformer_state *state = c->model->state;
    int64_t C = c->model->config.decoder.embed;
    dt_tensor dsum = dt_transformer_scratch(c->model, c->side, state->dsum, C);
    dt_tensor dread = dt_transformer_scratch(c->model, c->side, state->dread, C), dbranch;
    dt_device *device = c->model->device;
    dt_status st = DT_OK;

    DT_TRY(device->ops->zero(device, &dsum, err));
    DT_TRY(norm_backward(c, which, &dsum, d, &c->block->sub[which].sum, err));
    DT_TRY(norm_before_again(c, which, err));
    DT_TRY(branch_gradient(c, which, &dbranch, &dsum, err));
    DT_TRY(branches[which].backward(c, &dbranch, stream_before(c, which), err));
    DT_TRY(device->ops->residual_forward(device, d, &dsum, &dread, err));
out:
    return st;
}

/* *d: from the gradient of the sublayer's output to that of its input. */
static dt_status transformer_sublayer_backward(dt_transformer_call *c, dt_transformer_branch which,
                                               dt_tensor *d, dt_error *err)
{
    return (dt_transformer_is_pre(c->model) ? pre_backward : post_backward)(c, which, d, err);
}

/* Set up the call for a block. layer: counted over encoder and decoder. */
static void call_of(dt_transformer_call *c, dt_model *model, int layer, bool backward,
                    const dt_batch *dropout)
{
    dt_transformer_state *state = model->state;
    bool decoder = layer >= state->decoder.first_layer;

    c->model = model;
    c->side = decoder ? &state->decoder : &state->encoder;
    c->layer = layer - c->side->first_layer;
    c->block = &c->side->blocks[c->layer];
    c->dropout = dropout;
    c->backward = backward;
    for (int i = 0; i < DT_TRANSFORMER_BLOCK_PARAMS; i++) {
        c->w[i] = dt_transformer_weight(model, layer + 1, i);
        if (backward)
            c->dw[i] = dt_transformer_grad(model, layer + 1, i);
    }
}

static bool has(const dt_transformer_call *c, int which)
{
    return which != DT_TRANSFORMER_CROSS || c->side->decoder;
}

static dt_status forward(dt_transformer_call *c, bool again, dt_error *err)
{
    dt_status st = DT_OK;

    for (int which = 0; which < DT_TRANSFORMER_BRANCHES; which++)
        if (has(c, which))
            DT_TRY(transformer_sublayer_forward(c, (dt_transformer_branch)which, again, err));
out:
    return st;
}

dt_status dt_transformer_block_forward(dt_model *model, int layer, const dt_batch *dropout,
                                       dt_error *err)
{
    dt_transformer_call c;

    call_of(&c, model, layer, false, dropout);
    return forward(&c, false, err);
}

dt_tensor dt_transformer_dstream(const dt_model *model, const dt_transformer_side *side)
{
    const dt_transformer_state *state = model->state;

    if (!side->decoder && !dt_transformer_is_pre(model))
        return state->dencoded;
    return dt_transformer_scratch(model, side, state->dstream, model->config.decoder.embed);
}

dt_status dt_transformer_block_backward(dt_model *model, int layer, const dt_batch *dropout,
                                        dt_error *err)
{
    const dt_transformer_state *state = model->state;
    int last = state->decoder.first_layer + state->decoder.layers - 1;
    dt_transformer_call c;
    dt_status st = DT_OK;
    dt_tensor d;

    call_of(&c, model, layer, true, dropout);
    d = dt_transformer_dstream(model, c.side);
    if (model->config.recompute == DT_RECOMPUTE_FULL && layer < last)
        DT_TRY(forward(&c, true, err));
    for (int which = DT_TRANSFORMER_BRANCHES - 1; which >= 0; which--)
        if (has(&c, which))
            DT_TRY(transformer_sublayer_backward(&c, (dt_transformer_branch)which, &d, err));
out:
    return st;
}
