/* sublayer: computes a branch with its norm, dropout and residual sum, in pre-norm and post-norm
 * order. */
#include "engine/model/transformer/model_int.h"

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
    [DT_TRANSFORMER_PERCEPTRON] = {dt_transformer_perceptron_forward,
                                   dt_transformer_perceptron_backward, DT_TRANSFORMER_FFN_NORM_W,
                                   DT_TRANSFORMER_FFN_NORM_B, DT_PHILOX_DROPOUT_MLP},
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

dt_status dt_transformer_sublayer_forward(dt_transformer_call *c, dt_transformer_branch which,
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

    if (c->model->config.recompute != DT_RECOMPUTE_NONE)
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

    if (which == DT_TRANSFORMER_SELF || c->model->config.recompute == DT_RECOMPUTE_NONE)
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

dt_status dt_transformer_sublayer_backward(dt_transformer_call *c, dt_transformer_branch which,
                                           dt_tensor *d, dt_error *err)
{
    return (dt_transformer_is_pre(c->model) ? pre_backward : post_backward)(c, which, d, err);
}
