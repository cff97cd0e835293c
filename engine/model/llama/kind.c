#include <stdlib.h>

#include "engine/model/llama/model_int.h"

#include "base/banned.h"

extern const dt_model_kind dt_model_kind_llama;

static dt_status open_model(dt_model *model, dt_error *err)
{
    const dt_model_config *config = &model->config;
    dt_llama_state *state = calloc(1, sizeof *state);
    dt_status st = DT_OK;

    model->state = state;
    if (!state)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    state->logits_bytes = DT_LOGITS_BYTES;
    state->blocks = calloc((size_t)config->llama.layers, sizeof *state->blocks);
    state->targets = calloc((size_t)(config->batch * config->tokens), sizeof *state->targets);
    if (!state->blocks || !state->targets)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    st = dt_device_arena_open(&state->arena, model->device, model->activation_bytes, err);
    if (st)
        dt_error_prefix(err, "activations of %lld blocks over %lld x %lld tokens",
                        (long long)config->llama.layers, (long long)config->batch,
                        (long long)config->tokens);
    DT_TRY(st);
    DT_TRY(dt_llama_angles_fill(model, err));
out:
    return st;
}

static void close_model(dt_model *model)
{
    dt_llama_state *state = model->state;

    if (!state)
        return;
    dt_device_arena_close(&state->arena);
    free(state->targets);
    free(state->blocks);
    free(state);
    model->state = NULL;
}

static const dt_tensor *block_input(const dt_llama_state *state, int layer)
{
    return layer == 0 ? &state->embedded : &state->blocks[layer - 1].out;
}

/* Embedding and blocks, into block_input(layers). Unit 0 is in use when it returns. */
static dt_status forward(dt_model *model, const dt_batch *batch, const dt_batch *dropout,
                         dt_error *err)
{
    dt_device *device = model->device;
    dt_llama_state *state = model->state;
    dt_tensor weight, no_positions = {0};
    dt_status st = DT_OK;

    DT_TRY(dt_model_before_unit(model, 0, false, err));
    weight = dt_llama_weight(model, 0, DT_LLAMA_EMBED);
    DT_TRY(device->ops->embedding_forward(device, &state->embedded, &batch->inputs[DT_LLAMA_TOKENS],
                                          &weight, &no_positions, 1, err));
    if (dt_llama_drops(model, dropout)) {
        dt_philox_key key = dt_model_dropout_key(dropout, 0, DT_PHILOX_DROPOUT_EMBEDDING);

        DT_TRY(device->ops->dropout_forward(device, &state->embedded, &state->embedded,
                                            model->config.llama.dropout, &key, err));
    }
    for (int layer = 0; layer < model->config.llama.layers; layer++) {
        DT_TRY(dt_model_before_unit(model, layer + 1, false, err));
        DT_TRY(dt_llama_block_forward(model, layer, block_input(state, layer), dropout, err));
        DT_TRY(dt_model_after_unit(model, layer + 1, false, err));
    }
out:
    return st;
}

/* From state->dstream, the gradient of the last block's output, down to the embedding. */
static dt_status backward(dt_model *model, const dt_batch *batch, dt_error *err)
{
    dt_device *device = model->device;
    dt_llama_state *state = model->state;
    dt_tensor dweight, no_positions = {0}, dembedded = state->dstream;
    dt_status st = DT_OK;

    for (int layer = (int)model->config.llama.layers - 1; layer >= 0; layer--) {
        const dt_tensor *x = block_input(state, layer);

        DT_TRY(dt_model_before_unit(model, layer + 1, true, err));
        DT_TRY(dt_llama_block_recompute(model, layer, x, batch, err));
        DT_TRY(dt_llama_block_backward(model, layer, x, batch, err));
        DT_TRY(dt_model_after_unit(model, layer + 1, true, err));
        DT_TRY(dt_model_grads_ready(model, layer + 1, err));
    }
    if (dt_llama_drops(model, batch)) {
        dt_philox_key key = dt_model_dropout_key(batch, 0, DT_PHILOX_DROPOUT_EMBEDDING);

        dembedded = state->narrow;
        DT_TRY(device->ops->dropout_backward(device, &dembedded, &state->dstream,
                                             model->config.llama.dropout, &key, err));
    }
    dweight = dt_llama_grad(model, 0, DT_LLAMA_EMBED);
    DT_TRY(device->ops->embedding_backward(device, &dweight, &no_positions, &dembedded,
                                           &batch->inputs[DT_LLAMA_TOKENS], 1, err));
    DT_TRY(dt_model_after_unit(model, 0, true, err));
    DT_TRY(dt_model_grads_ready(model, 0, err));
out:
    return st;
}

/* Takes the batch's shape; a batch that the model was not opened for is a bug. */
static void lay_out(dt_model *model, const dt_batch *batch, bool with_backward)
{
    const dt_model_config *config = &model->config;
    const dt_tensor *tokens = &batch->inputs[DT_LLAMA_TOKENS];
    const dt_tensor *targets = &batch->inputs[DT_LLAMA_TARGETS];

    DT_ASSERT(tokens->data && tokens->dtype == DT_I32 && tokens->ndim == 2);
    DT_ASSERT(tokens->dim[0] > 0 && tokens->dim[1] > 0 && tokens->dim[1] <= config->llama.context);
    DT_ASSERT(tokens->dim[0] * tokens->dim[1] <= config->batch * config->tokens);
    DT_ASSERT(!targets->data || dt_tensor_elems(targets) == dt_tensor_elems(tokens));
    dt_llama_lay_out(model, tokens->dim[0], tokens->dim[1], with_backward);
}

static dt_status pass(dt_model *model, const dt_batch *batch, double loss_scale, dt_error *err)
{
    dt_llama_state *state = model->state;
    const dt_tensor *last;
    dt_status st = DT_OK;

    DT_ASSERT(!model->config.inference && batch->inputs[DT_LLAMA_TARGETS].data);
    lay_out(model, batch, true);
    last = block_input(state, (int)model->config.llama.layers);
    DT_TRY(forward(model, batch, batch, err));
    DT_TRY(dt_llama_head_norm(model, last, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    DT_TRY(dt_model_before_unit(model, 0, true, err));
    DT_TRY(dt_llama_head_train(model, last, &batch->inputs[DT_LLAMA_TARGETS], loss_scale, err));
    DT_TRY(backward(model, batch, err));
out:
    return st;
}

/* Laid out once more: the pass may have come from a graph, and another shape before it. */
static dt_status loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err)
{
    const dt_llama_state *state = model->state;

    lay_out(model, batch, true);
    return model->device->ops->sum(model->device, loss_sum, &state->losses, err);
}

/* Final norm of a pass without backward that is laid out; unit 0 is in use when it returns. */
static dt_status infer(dt_model *model, const dt_batch *batch, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(forward(model, batch, NULL, err));
    DT_TRY(
        dt_llama_head_norm(model, block_input(model->state, (int)model->config.llama.layers), err));
out:
    return st;
}

static dt_status evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                          int64_t *counted, dt_error *err)
{
    const dt_tensor *targets = &batch->inputs[DT_LLAMA_TARGETS];
    dt_llama_state *state = model->state;
    dt_device *device = model->device;
    int64_t rows = dt_tensor_elems(targets);
    dt_status st = DT_OK;

    DT_ASSERT(targets->data);
    lay_out(model, batch, false);
    DT_TRY(infer(model, batch, err));
    DT_TRY(dt_llama_head_evaluate(model, targets, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    DT_TRY(device->ops->sum(device, loss_sum, &state->losses, err));
    DT_TRY(device->copy_out(device, state->targets, targets->data, (size_t)rows * sizeof(int32_t),
                            err));
    *counted = 0;
    for (int64_t i = 0; i < rows; i++)
        *counted += state->targets[i] >= 0;
out:
    return st;
}

static dt_status logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                        dt_error *err)
{
    dt_status st = DT_OK;

    DT_ASSERT(last > 0 && last <= batch->inputs[DT_LLAMA_TOKENS].dim[1]);
    lay_out(model, batch, false);
    DT_TRY(infer(model, batch, err));
    DT_TRY(dt_llama_head_logits(model, last, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}

static dt_status extend(dt_model *model, const dt_tensor *tokens, float *logits, dt_error *err)
{
    dt_llama_state *state = model->state;
    dt_batch batch = {.inputs[DT_LLAMA_TOKENS] = *tokens};
    dt_status st = DT_OK;

    DT_ASSERT(model->config.incremental && tokens->dim[0] == 1);
    DT_ASSERT(state->kept_tokens + tokens->dim[1] <= model->config.llama.context);
    lay_out(model, &batch, false);
    dt_llama_lay_out_behind(model);
    DT_TRY(infer(model, &batch, err));
    DT_TRY(dt_llama_head_logits(model, 1, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    state->kept_tokens += tokens->dim[1];
out:
    return st;
}

static int64_t extended(const dt_model *model)
{
    const dt_llama_state *state = model->state;

    return state->kept_tokens;
}

static dt_model_text text(const dt_model *model)
{
    return (dt_model_text){.context = model->config.llama.context,
                           .vocab = model->config.llama.vocab};
}

const dt_model_kind dt_model_kind_llama = {
    .activation_bytes = dt_llama_activation_bytes,
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
