/* residual: adds the output of blocks to the residual stream, with dropout, and configures
 * attention. Here are the sums over the ranks that divide a layer, except those of the head (head.c). */
#include "engine/model/decoder/decoder.h"
#include "recipes/architecture/decoder.h"

bool dt_decoder_drops(const dt_model *model, const dt_batch *dropout)
{
    return dropout && model->config.decoder.dropout > 0;
}

/* Whether one op of the device can do product and addition: needs no dropout between them, and y
 * apart from onto. */
static bool adds_in_the_product(const dt_model *model, const dt_tensor *y, const dt_tensor *onto,
                                const dt_batch *dropout)
{
    return model->device->ops->matmul_residual_forward != NULL && y->data != onto->data &&
           model->peers == NULL && !dt_decoder_drops(model, dropout);
}

dt_status dt_decoder_project(dt_model *model, dt_tensor *y, const dt_tensor *onto,
                             const dt_tensor *x, const dt_tensor *w, const dt_tensor *b,
                             const dt_batch *dropout, int layer, dt_philox_op op, dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    dt_decoder *state = model->state;
    dt_tensor *added = &state->narrow;
    dt_status st = DT_OK;
    dt_philox_key key;

    if (adds_in_the_product(model, y, onto, dropout))
        return ops->matmul_residual_forward(model->device, y, onto, x, w, b, err);
    DT_TRY(dt_layer_project(model, added, x, w, b, &state->terms, err));
    if (dt_decoder_drops(model, dropout)) {
        key = dt_model_dropout_key(dropout, layer, op);
        DT_TRY(ops->dropout_forward(model->device, added, added, model->config.decoder.dropout,
                                    &key, err));
    }
    DT_TRY(ops->residual_forward(model->device, y, onto, added, err));
out:
    return st;
}

dt_status dt_decoder_project_grad(dt_model *model, dt_tensor *dy, const dt_batch *dropout,
                                  int layer, dt_philox_op op, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_philox_key key;

    *dy = state->dstream;
    if (!dt_decoder_drops(model, dropout))
        return DT_OK;
    *dy = state->narrow;
    key = dt_model_dropout_key(dropout, layer, op);
    return model->device->ops->dropout_backward(model->device, dy, &state->dstream,
                                                model->config.decoder.dropout, &key, err);
}

dt_status dt_decoder_input_grad(dt_model *model, dt_tensor *dx, const dt_tensor *dy,
                                const dt_tensor *w, dt_error *err)
{
    const dt_decoder *state = model->state;

    return dt_layer_input_grad(model, dx, dy, w, &state->terms, err);
}

dt_status dt_decoder_embed(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                           const dt_tensor *wte, const dt_tensor *wpe, double scale, dt_error *err)
{
    const dt_decoder *state = model->state;

    return dt_layer_embed(model, y, tokens, wte, wpe, scale, model->config.decoder.vocab,
                          &state->terms, err);
}

dt_attention_args dt_decoder_attention_args(const dt_model *model, const dt_batch *dropout,
                                            int layer, dt_philox_key *key)
{
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
    if (!dropout || model->config.decoder.attention_dropout == 0)
        return args;
    *key = dt_model_dropout_key(dropout, layer, DT_PHILOX_DROPOUT_ATTENTION);
    args.heads = model->config.decoder.heads;
    args.first_head = model->config.tensor.rank * dt_decoder_heads(&model->config);
    args.p = model->config.decoder.attention_dropout;
    return args;
}
