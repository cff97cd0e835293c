#include <stdlib.h>

#include "engine/model/decoder/decoder.h"
#include "engine/model/token_head.h"

#include "base/banned.h"

static size_t activation_bytes(const dt_model_kind *kind, const dt_model_config *config)
{
    return dt_decoder_count_bytes(kind->decoder, config);
}

static dt_status open_model(dt_model *model, dt_error *err)
{
    const dt_model_config *config = &model->config;
    const dt_decoder_parts *parts = model->kind->decoder;
    size_t layers = (size_t)config->decoder.layers;
    dt_decoder *state = calloc(1, sizeof *state);
    dt_status st = DT_OK;

    model->state = state;
    if (!state)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    state->logits_bytes = DT_LOGITS_BYTES;
    state->wide_chunks = !model->device->host_reads;
    state->blocks = calloc(layers, parts->block_bytes);
    state->stream = calloc(layers + 1, sizeof *state->stream);
    state->targets = calloc((size_t)(config->batch * config->tokens), sizeof *state->targets);
    if (!state->blocks || !state->stream || !state->targets)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    st = dt_device_arena_open(&state->arena, model->device, model->activation_bytes, err);
    if (st)
        dt_error_prefix(err, "activations of %lld blocks over %lld x %lld tokens",
                        (long long)config->decoder.layers, (long long)config->batch,
                        (long long)config->tokens);
    DT_TRY(st);
    dt_decoder_lay_out(model, 1, 1, !config->inference);
    if (parts->fill_tables != NULL)
        DT_TRY(parts->fill_tables(model, err));
out:
    return st;
}

static void close_model(dt_model *model)
{
    dt_decoder *state = model->state;

    if (!state)
        return;
    dt_device_arena_close(&state->arena);
    free(state->targets);
    free(state->stream);
    free(state->blocks);
    free(state);
    model->state = NULL;
}

/* What the final norm reads. */
static const dt_tensor *last_of(const dt_model *model)
{
    const dt_decoder *state = model->state;

    return &state->stream[model->config.decoder.layers];
}

/* All of a block's. */
static void params_of(dt_tensor *out, const dt_model *model, int layer,
                      dt_tensor (*view)(const dt_model *, int unit, int which))
{
    int count = model->kind->decoder->block_params;

    DT_ASSERT(count <= DT_DECODER_BLOCK_PARAMS);
    for (int i = 0; i < count; i++)
        out[i] = view(model, layer + 1, i);
}

static dt_status block_forward(dt_model *model, int layer, const dt_batch *dropout, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_tensor w[DT_DECODER_BLOCK_PARAMS];

    params_of(w, model, layer, dt_decoder_weight);
    return model->kind->decoder->block_forward(model, layer, &state->stream[layer + 1],
                                               &state->stream[layer], w, dropout, err);
}

static dt_status block_backward(dt_model *model, int layer, const dt_batch *dropout, dt_error *err)
{
    const dt_decoder_parts *parts = model->kind->decoder;
    const dt_decoder *state = model->state;
    const dt_tensor *x = &state->stream[layer];
    dt_tensor w[DT_DECODER_BLOCK_PARAMS], dw[DT_DECODER_BLOCK_PARAMS];
    dt_status st = DT_OK;

    params_of(w, model, layer, dt_decoder_weight);
    params_of(dw, model, layer, dt_decoder_grad);
    if (model->config.recompute == DT_RECOMPUTE_FULL && layer < model->config.decoder.layers - 1)
        DT_TRY(parts->block_products(model, layer, x, w, dropout, err));
    DT_TRY(parts->block_backward(model, layer, x, w, dw, dropout, err));
out:
    return st;
}

/* Embedding and blocks. Unit 0 is in use when it returns. */
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

/* From state->dstream, the gradient of the last block's output, down to the embedding. */
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

/* Takes the batch's shape; a batch that the model was not opened for is a bug. */
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
}

static dt_status pass(dt_model *model, const dt_batch *batch, const double *loss_scale,
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
    DT_TRY(dt_decoder_head_train(model, last, targets, loss_scale, err));
    DT_TRY(backward(model, batch, err));
out:
    return st;
}

/* Laid out once more: the pass may have come from a graph, and another shape before it. */
static dt_status loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err)
{
    const dt_decoder *state = model->state;

    lay_out(model, batch, true);
    return model->device->ops->sum(model->device, loss_sum, &state->losses, err);
}

/* Final norm of a pass without backward that is laid out; unit 0 is in use when it returns. */
static dt_status infer(dt_model *model, const dt_batch *batch, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(forward(model, batch, NULL, err));
    DT_TRY(model->kind->decoder->norm_forward(model, last_of(model), err));
out:
    return st;
}

static dt_status evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                          int64_t *counted, dt_error *err)
{
    const dt_tensor *targets = &batch->inputs[DT_DECODER_TARGETS];
    dt_decoder *state = model->state;
    dt_status st = DT_OK;

    DT_ASSERT(targets->data);
    lay_out(model, batch, false);
    DT_TRY(infer(model, batch, err));
    DT_TRY(dt_decoder_head_evaluate(model, targets, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    DT_TRY(dt_token_head_sum(model->device, &state->losses, targets, state->targets, loss_sum,
                             counted, err));
out:
    return st;
}

static dt_status logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                        dt_error *err)
{
    dt_status st = DT_OK;

    DT_ASSERT(last > 0 && last <= batch->inputs[DT_DECODER_TOKENS].dim[1]);
    lay_out(model, batch, false);
    DT_TRY(infer(model, batch, err));
    DT_TRY(dt_decoder_head_logits(model, last, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}

static dt_status extend(dt_model *model, const dt_tensor *tokens, float *logits, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_batch batch = {.inputs[DT_DECODER_TOKENS] = *tokens};
    dt_status st = DT_OK;

    DT_ASSERT(model->config.incremental && tokens->dim[0] == 1);
    DT_ASSERT(state->kept_tokens + tokens->dim[1] <= model->config.decoder.context);
    lay_out(model, &batch, false);
    model->kind->decoder->lay_out_behind(model);
    state->first_position = state->kept_tokens;
    DT_TRY(infer(model, &batch, err));
    DT_TRY(dt_decoder_head_logits(model, 1, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    state->kept_tokens += tokens->dim[1];
out:
    return st;
}

static int64_t extended(const dt_model *model)
{
    const dt_decoder *state = model->state;

    return state->kept_tokens;
}

static dt_model_text text(const dt_model *model)
{
    return (dt_model_text){.context = model->config.decoder.context,
                           .vocab = model->config.decoder.vocab};
}

const dt_model_passes dt_decoder_passes = {
    .activation_bytes = activation_bytes,
    .open = open_model,
    .close = close_model,
    .pass = pass,
    .loss = loss,
    .evaluate = evaluate,
    .text = text,
    .logits = logits,
    .extend = extend,
    .extended = extended,
};
