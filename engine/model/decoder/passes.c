/* passes: whole passes, and the head at their end. */
#include "engine/model/decoder/decoder.h"
#include "engine/model/vocabulary.h"
#include "recipes/architecture/decoder.h"

static dt_token_head head_of(dt_model *model)
{
    const dt_decoder_parts *parts = model->kind->decoder;
    const dt_decoder *state = model->state;

    return (dt_token_head){
        .model = model,
        .vocab = model->config.decoder.vocab,
        .vocab_padded = dt_decoder_vocab_rows(&model->config),
        .logits = state->logits,
        .factor = parts->logits_factor != NULL ? parts->logits_factor(&model->config) : 1,
        .cap = parts->logits_cap != NULL ? parts->logits_cap(&model->config) : 0,
        .capped = state->capped,
        .gathered = state->gathered,
        .chunk_rows = state->logits_rows,
        .x = state->norm,
        .linear = {.w = dt_decoder_weight(model, 0, dt_decoder_head_param(model))},
        .losses = state->losses,
        .weights = state->weights.data != NULL ? &state->weights : NULL,
        .part = dt_layer_vocab(model, dt_decoder_vocab_rows(&model->config),
                               model->config.decoder.vocab),
        .own = state->part_own,
        .all = state->part_all};
}

/* Losses, and the gradients of head and final norm; writes state->dstream. x: the input of the
 * final norm. reference: of pairs of answers; NULL: the batch has no pairs. */
static dt_status decoder_head_train(dt_model *model, const dt_tensor *x, const dt_tensor *targets,
                                    const dt_tensor *reference, const double *loss_scale,
                                    dt_error *err)
{
    dt_device *device = model->device;
    dt_decoder *state = model->state;
    dt_token_head head = head_of(model);
    dt_tensor term = dt_layer_term(model, &state->dnarrow, &state->terms);
    dt_status st = DT_OK;

    head.linear.dw = dt_decoder_grad(model, 0, dt_decoder_head_param(model));
    if (reference != NULL) {
        DT_TRY(dt_token_head_losses(&head, targets, err));
        DT_TRY(dt_decoder_weigh_pairs(model, reference, true, err));
        head.weights = &state->pairs.weights;
    }
    DT_TRY(dt_token_head_train(&head, &term, targets, loss_scale, err));
    if (reference != NULL)
        DT_TRY(dt_decoder_put_pair_losses(model, err));
    DT_TRY(dt_layer_sum(model, &state->dnarrow, &term, err));
    /* zero it, because the norm's backward adds to it */
    DT_TRY(device->ops->zero(device, &state->dstream, err));
    DT_TRY(model->kind->decoder->norm_backward(model, x, err));
out:
    return st;
}

/* Compute the losses only. */
static dt_status decoder_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err)
{
    dt_token_head head = head_of(model);

    return dt_token_head_evaluate(&head, targets, err);
}

dt_status dt_decoder_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err)
{
    const dt_decoder *state = model->state;
    dt_token_head head = head_of(model);

    return dt_token_head_logits(&head, state->B, last, logits, err);
}

/* The input of the final norm. */
static const dt_tensor *last_of(const dt_model *model)
{
    const dt_decoder *state = model->state;

    return &state->stream[model->config.decoder.layers];
}

/* Views of all parameters of a block. */
static void params_of(dt_tensor *out, const dt_model *model, int layer,
                      dt_tensor (*view)(const dt_model *, int unit, int which))
{
    int count = model->kind->decoder->block_params;

    DT_ASSERT(count <= DT_DECODER_BLOCK_PARAMS);
    for (int i = 0; i < count; i++)
        out[i] = view(model, layer + 1, i);
}

/* NULL: the model has none, or they are off. */
static const dt_adapters *adapters_of(const dt_model *model)
{
    const dt_decoder *state = model->state;

    return state->adapters.table.data != NULL && !model->adapter_off ? &state->adapters : NULL;
}

static dt_status block_forward(dt_model *model, int layer, const dt_batch *dropout, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_tensor w[DT_DECODER_BLOCK_PARAMS];
    dt_block_call call = {model, layer, w, NULL, dropout, &state->terms, adapters_of(model)};

    params_of(w, model, layer, dt_decoder_weight);
    return model->kind->decoder->block_forward(&call, &state->stream[layer + 1],
                                               &state->stream[layer], err);
}

static dt_status block_backward(dt_model *model, int layer, const dt_batch *dropout, dt_error *err)
{
    const dt_decoder_parts *parts = model->kind->decoder;
    const dt_decoder *state = model->state;
    const dt_tensor *x = &state->stream[layer];
    dt_tensor w[DT_DECODER_BLOCK_PARAMS], dw[DT_DECODER_BLOCK_PARAMS];
    dt_block_call call = {model, layer, w, dw, dropout, &state->terms, adapters_of(model)};
    dt_status st = DT_OK;

    params_of(w, model, layer, dt_decoder_weight);
    params_of(dw, model, layer, dt_decoder_grad);
    if (model->config.recompute == DT_RECOMPUTE_FULL && layer < model->config.decoder.layers - 1)
        DT_TRY(parts->block_products(&call, x, err));
    DT_TRY(parts->block_backward(&call, x, err));
out:
    return st;
}

/* Run embedding and blocks. Unit 0 is in use when it returns. */
static dt_status forward(dt_model *model, const dt_batch *batch, const dt_batch *dropout,
                         dt_error *err)
{
    dt_device *device = model->device;
    dt_decoder *state = model->state;
    dt_tensor *embedded = &state->stream[0];
    dt_status st = DT_OK;

    DT_TRY(dt_model_before_unit(model, 0, false, err));
    DT_TRY(model->kind->decoder->embed_forward(model, embedded, &batch->inputs[DT_DECODER_TOKENS],
                                               err));
    if (dt_decoder_drops(model, dropout)) {
        dt_philox_key key = dt_model_dropout_key(dropout, 0, DT_PHILOX_DROPOUT_EMBEDDING);

        DT_TRY(device->ops->dropout_forward(device, embedded, embedded,
                                            model->config.decoder.dropout, &key, err));
    }
    DT_TRY(dt_model_blocks_forward(model, 0, (int)model->config.decoder.layers, block_forward,
                                   dropout, err));
out:
    return st;
}

/* Propagate the gradient from state->dstream, that of the last block's output, down to the
 * embedding. */
static dt_status backward(dt_model *model, const dt_batch *batch, dt_error *err)
{
    dt_device *device = model->device;
    dt_decoder *state = model->state;
    dt_tensor dembedded;
    dt_status st = DT_OK;

    DT_TRY(dt_model_blocks_backward(model, 0, (int)model->config.decoder.layers, block_backward,
                                    batch, err));
    dembedded = state->dstream;
    if (dt_decoder_drops(model, batch)) {
        dt_philox_key key = dt_model_dropout_key(batch, 0, DT_PHILOX_DROPOUT_EMBEDDING);

        dembedded = state->narrow;
        DT_TRY(device->ops->dropout_backward(device, &dembedded, &state->dstream,
                                             model->config.decoder.dropout, &key, err));
    }
    DT_TRY(model->kind->decoder->embed_backward(model, &dembedded,
                                                &batch->inputs[DT_DECODER_TOKENS], err));
    DT_TRY(dt_model_after_unit(model, 0, true, err));
    DT_TRY(dt_model_grads_ready(model, 0, err));
out:
    return st;
}

/* Lay out a pass of the batch's shape. Asserts that the model was opened for such a batch. */
static void lay_out(dt_model *model, const dt_batch *batch, bool with_backward)
{
    const dt_model_config *config = &model->config;
    const dt_tensor *tokens = &batch->inputs[DT_DECODER_TOKENS];
    const dt_tensor *targets = &batch->inputs[DT_DECODER_TARGETS];
    dt_decoder *state = model->state;

    DT_ASSERT(tokens->data && tokens->dtype == DT_I32 && tokens->ndim == 2);
    DT_ASSERT(tokens->dim[0] > 0 && tokens->dim[1] > 0 &&
              tokens->dim[1] <= config->decoder.context);
    DT_ASSERT(tokens->dim[0] * tokens->dim[1] <= config->batch * config->tokens);
    DT_ASSERT(!targets->data || dt_tensor_elems(targets) == dt_tensor_elems(tokens));
    dt_decoder_lay_out(model, tokens->dim[0], tokens->dim[1], with_backward);
    state->starts = batch->inputs[DT_DECODER_STARTS];
    state->positions = batch->inputs[DT_DECODER_POSITIONS];
    state->weights = batch->inputs[DT_DECODER_WEIGHTS];
}

/* NULL: the batch has no pairs of answers. */
static const dt_tensor *reference_of(const dt_model *model, const dt_batch *batch)
{
    return model->config.decoder.beta > 0 ? &batch->inputs[DT_DECODER_REFERENCE] : NULL;
}

dt_status dt_decoder_pass(dt_model *model, const dt_batch *batch, const double *loss_scale,
                          dt_error *err)
{
    const dt_tensor *last = last_of(model), *targets = &batch->inputs[DT_DECODER_TARGETS];
    dt_status st = DT_OK;

    DT_ASSERT(!model->config.inference && targets->data);
    lay_out(model, batch, true);
    DT_TRY(forward(model, batch, batch, err));
    DT_TRY(model->kind->decoder->norm_forward(model, last, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    DT_TRY(dt_model_before_unit(model, 0, true, err));
    DT_TRY(decoder_head_train(model, last, targets, reference_of(model, batch), loss_scale, err));
    DT_TRY(backward(model, batch, err));
out:
    return st;
}

/* Lays out the pass again: it may have been replayed from a graph after a pass of another shape. */
dt_status dt_decoder_loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err)
{
    const dt_decoder *state = model->state;

    lay_out(model, batch, true);
    return model->device->ops->sum(model->device, loss_sum, &state->losses, err);
}

void dt_decoder_begin(dt_model *model, const dt_batch *batch)
{
    lay_out(model, batch, false);
}

dt_status dt_decoder_infer(dt_model *model, const dt_batch *batch, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(forward(model, batch, NULL, err));
    DT_TRY(model->kind->decoder->norm_forward(model, last_of(model), err));
out:
    return st;
}

dt_status dt_decoder_evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                              double *counted, dt_error *err)
{
    const dt_tensor *targets = &batch->inputs[DT_DECODER_TARGETS];
    dt_decoder *state = model->state;
    dt_status st = DT_OK;

    DT_ASSERT(targets->data);
    lay_out(model, batch, false);
    DT_TRY(dt_decoder_infer(model, batch, err));
    DT_TRY(decoder_head_evaluate(model, targets, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    if (reference_of(model, batch) != NULL) {
        DT_TRY(dt_decoder_weigh_pairs(model, reference_of(model, batch), false, err));
        *loss_sum = state->pairs.of_pass.loss;
        *counted = (double)state->pairs.of_pass.pairs;
        goto out;
    }
    DT_TRY(dt_token_head_sum(model->device, &state->losses, targets,
                             state->weights.data != NULL ? &state->weights : NULL, state->targets,
                             loss_sum, counted, err));
out:
    return st;
}

dt_status dt_decoder_logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                            dt_error *err)
{
    dt_status st = DT_OK;

    DT_ASSERT(last > 0 && last <= batch->inputs[DT_DECODER_TOKENS].dim[1]);
    lay_out(model, batch, false);
    DT_TRY(dt_decoder_infer(model, batch, err));
    DT_TRY(dt_decoder_head_logits(model, last, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}
