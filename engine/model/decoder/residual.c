/* residual: views of a block's parameters; adds the output of blocks to the residual stream, with dropout,
 * and configures attention. */
#include "engine/model/decoder/decoder.h"
#include "engine/model/vocabulary.h"
#include "recipes/architecture/decoder.h"

static dt_tensor view(const dt_model *model, int unit, int which, dt_dtype dtype,
                      dt_tensor (*of)(const dt_model *, int unit, int which))
{
    const dt_decoder_parts *parts = model->kind->decoder;
    int before = 0;

    if (parts->lacks(&model->config, unit, which))
        return (dt_tensor){.dtype = dtype};
    for (int i = 0; i < which; i++)
        before += !parts->lacks(&model->config, unit, i);
    return of(model, unit, before);
}

dt_tensor dt_decoder_weight(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, model->config.dtype, dt_model_weight);
}

dt_tensor dt_decoder_grad(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, DT_F32, dt_model_grad);
}

int dt_decoder_head_param(const dt_model *model)
{
    const dt_decoder_parts *parts = model->kind->decoder;

    return model->config.decoder.own_lm_head ? parts->head_param : parts->embedding_param;
}

int dt_decoder_block_params(const dt_model *model)
{
    const dt_decoder_parts *parts = model->kind->decoder;
    int count = 0;

    for (int i = 0; i < parts->block_params; i++)
        count += !parts->lacks(&model->config, 1, i);
    return count;
}

bool dt_decoder_drops(const dt_model *model, const dt_batch *dropout)
{
    return dropout && model->config.decoder.dropout > 0;
}

dt_status dt_decoder_project(const dt_block_call *c, const dt_linear *linear, dt_tensor *y,
                             const dt_tensor *onto, const dt_tensor *x, dt_philox_op op,
                             dt_error *err)
{
    dt_device *device = c->model->device;
    dt_decoder *state = c->model->state;
    dt_tensor *added = &state->narrow;
    bool drops = dt_decoder_drops(c->model, c->dropout);
    dt_status st = DT_OK;
    dt_philox_key key;

    if (dt_linear_fuses_sum(c->model) && !drops && y->data != onto->data)
        return dt_linear_forward_onto(c->model, linear, y, onto, x, err);
    DT_TRY(dt_linear_forward(c->model, linear, added, x, err));
    if (drops) {
        key = dt_model_dropout_key(c->dropout, c->layer, op);
        DT_TRY(device->ops->dropout_forward(device, added, added, c->model->config.decoder.dropout,
                                            &key, err));
    }
    DT_TRY(device->ops->residual_forward(device, y, onto, added, err));
out:
    return st;
}

dt_status dt_decoder_project_grad(const dt_block_call *c, dt_tensor *dy, dt_philox_op op,
                                  dt_error *err)
{
    dt_device *device = c->model->device;
    dt_decoder *state = c->model->state;
    dt_philox_key key;

    *dy = state->dstream;
    if (!dt_decoder_drops(c->model, c->dropout))
        return DT_OK;
    *dy = state->narrow;
    key = dt_model_dropout_key(c->dropout, c->layer, op);
    return device->ops->dropout_backward(device, dy, &state->dstream,
                                         c->model->config.decoder.dropout, &key, err);
}

dt_status dt_decoder_embed(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                           const dt_tensor *wte, const dt_tensor *wpe, double scale, dt_error *err)
{
    const dt_decoder *state = model->state;

    return dt_layer_embed(model, y, tokens, wte, wpe, scale, model->config.decoder.vocab,
                          &state->terms, err);
}

dt_attention_args dt_decoder_attention_args(const dt_block_call *c, dt_philox_key *key)
{
    const dt_model *model = c->model;
    const dt_decoder *state = model->state;
    dt_attention_args args = {.mask = DT_MASK_CAUSAL, .key = key};

    if (state->starts.data != NULL) {
        args.mask = DT_MASK_SEGMENTS;
        args.segment_starts = state->starts;
    }
    if (state->growth.each) {
        args.mask = DT_MASK_LENGTHS;
        args.key_lengths = state->growth.lengths;
    }
    if (!c->dropout || model->config.decoder.attention_dropout == 0)
        return args;
    *key = dt_model_dropout_key(c->dropout, c->layer, DT_PHILOX_DROPOUT_ATTENTION);
    args.heads = model->config.decoder.heads;
    args.first_head = model->config.tensor.rank * dt_decoder_heads(&model->config);
    args.p = model->config.decoder.attention_dropout;
    return args;
}
