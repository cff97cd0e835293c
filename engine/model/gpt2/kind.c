#include <math.h>
#include <stdlib.h>

#include "engine/model/gpt2/model_int.h"

#include "base/banned.h"

extern const dt_model_kind dt_model_kind_gpt2;

static dt_status open_model(dt_model *model, dt_error *err)
{
    const dt_model_config *config = &model->config;
    dt_gpt2_state *state = calloc(1, sizeof *state);
    dt_status st = DT_OK;

    model->state = state;
    if (!state)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    state->logits_bytes = DT_LOGITS_BYTES;
    state->wide_chunks = !model->device->host_reads;
    state->blocks = calloc((size_t)config->gpt2.layers, sizeof *state->blocks);
    state->targets = calloc((size_t)(config->batch * config->tokens), sizeof *state->targets);
    if (!state->blocks || !state->targets)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    st = dt_device_arena_open(&state->arena, model->device, model->activation_bytes, err);
    if (st)
        dt_error_prefix(err, "activations of %lld blocks over %lld x %lld tokens",
                        (long long)config->gpt2.layers, (long long)config->batch,
                        (long long)config->tokens);
    DT_TRY(st);
    if (config->gpt2.positions == DT_POSITIONS_SINUSOIDAL)
        DT_TRY(dt_gpt2_positions_fill(model, err));
out:
    return st;
}

static void close_model(dt_model *model)
{
    dt_gpt2_state *state = model->state;

    if (!state)
        return;
    dt_device_arena_close(&state->arena);
    free(state->targets);
    free(state->blocks);
    free(state);
    model->state = NULL;
}

static double embedding_scale(const dt_model *model)
{
    const dt_gpt2_config *config = &model->config.gpt2;

    return config->scale_embedding ? sqrt((double)config->embed) : 1;
}

/* The rows of the position table from `first` on. */
static dt_tensor positions_from(const dt_model *model, int64_t first)
{
    const dt_gpt2_state *state = model->state;
    dt_tensor table = model->config.gpt2.positions == DT_POSITIONS_SINUSOIDAL
                          ? state->positions
                          : dt_gpt2_weight(model, 0, DT_GPT2_WPE);
    unsigned char *rows = table.data;

    rows += (size_t)(first * table.dim[1]) * dt_dtype_bytes(table.dtype);
    return dt_tensor_2d(rows, table.dtype, table.dim[0] - first, table.dim[1]);
}

static const dt_tensor *block_input(const dt_gpt2_state *state, int layer)
{
    return layer == 0 ? &state->embedded : &state->blocks[layer - 1].out;
}

/* Embedding and blocks, into block_input(layers). Unit 0 is in use when it returns. */
static dt_status forward(dt_model *model, const dt_batch *batch, const dt_batch *dropout,
                         dt_error *err)
{
    dt_device *device = model->device;
    dt_gpt2_state *state = model->state;
    dt_tensor wte, wpe;
    dt_status st = DT_OK;

    DT_TRY(dt_model_before_unit(model, 0, false, err));
    wte = dt_gpt2_weight(model, 0, DT_GPT2_WTE);
    wpe = positions_from(model, state->first_position);
    DT_TRY(device->ops->embedding_forward(device, &state->embedded, &batch->inputs[DT_GPT2_TOKENS],
                                          &wte, &wpe, embedding_scale(model), err));
    if (dt_gpt2_drops(model, dropout)) {
        dt_philox_key key = dt_model_dropout_key(dropout, 0, DT_PHILOX_DROPOUT_EMBEDDING);

        DT_TRY(device->ops->dropout_forward(device, &state->embedded, &state->embedded,
                                            model->config.gpt2.dropout, &key, err));
    }
    for (int layer = 0; layer < model->config.gpt2.layers; layer++) {
        DT_TRY(dt_model_before_unit(model, layer + 1, false, err));
        DT_TRY(dt_gpt2_block_forward(model, layer, block_input(state, layer), dropout, err));
        DT_TRY(dt_model_after_unit(model, layer + 1, false, err));
    }
out:
    return st;
}

/* From state->dstream, the gradient of the last block's output, down to the embeddings. */
static dt_status backward(dt_model *model, const dt_batch *batch, dt_error *err)
{
    dt_device *device = model->device;
    dt_gpt2_state *state = model->state;
    dt_tensor dwte, dwpe, dembedded = state->dstream;
    dt_status st = DT_OK;

    for (int layer = (int)model->config.gpt2.layers - 1; layer >= 0; layer--) {
        const dt_tensor *x = block_input(state, layer);

        DT_TRY(dt_model_before_unit(model, layer + 1, true, err));
        DT_TRY(dt_gpt2_block_recompute(model, layer, x, batch, err));
        DT_TRY(dt_gpt2_block_backward(model, layer, x, batch, err));
        DT_TRY(dt_model_after_unit(model, layer + 1, true, err));
        DT_TRY(dt_model_grads_ready(model, layer + 1, err));
    }
    if (dt_gpt2_drops(model, batch)) {
        dt_philox_key key = dt_model_dropout_key(batch, 0, DT_PHILOX_DROPOUT_EMBEDDING);

        dembedded = state->narrow;
        DT_TRY(device->ops->dropout_backward(device, &dembedded, &state->dstream,
                                             model->config.gpt2.dropout, &key, err));
    }
    dwte = dt_gpt2_grad(model, 0, DT_GPT2_WTE);
    dwpe = dt_gpt2_grad(model, 0, DT_GPT2_WPE);
    DT_TRY(device->ops->embedding_backward(device, &dwte, &dwpe, &dembedded,
                                           &batch->inputs[DT_GPT2_TOKENS], embedding_scale(model),
                                           err));
    DT_TRY(dt_model_after_unit(model, 0, true, err));
    DT_TRY(dt_model_grads_ready(model, 0, err));
out:
    return st;
}

/* Takes the batch's shape; a batch that the model was not opened for is a bug. */
static void lay_out(dt_model *model, const dt_batch *batch, bool with_backward)
{
    const dt_model_config *config = &model->config;
    const dt_tensor *tokens = &batch->inputs[DT_GPT2_TOKENS];
    const dt_tensor *targets = &batch->inputs[DT_GPT2_TARGETS];

    DT_ASSERT(tokens->data && tokens->dtype == DT_I32 && tokens->ndim == 2);
    DT_ASSERT(tokens->dim[0] > 0 && tokens->dim[1] > 0 && tokens->dim[1] <= config->gpt2.context);
    DT_ASSERT(tokens->dim[0] * tokens->dim[1] <= config->batch * config->tokens);
    DT_ASSERT(!targets->data || dt_tensor_elems(targets) == dt_tensor_elems(tokens));
    dt_gpt2_lay_out(model, tokens->dim[0], tokens->dim[1], with_backward);
}

static dt_status pass(dt_model *model, const dt_batch *batch, double loss_scale, dt_error *err)
{
    dt_gpt2_state *state = model->state;
    const dt_tensor *last;
    dt_status st = DT_OK;

    DT_ASSERT(!model->config.inference && batch->inputs[DT_GPT2_TARGETS].data);
    lay_out(model, batch, true);
    last = block_input(state, (int)model->config.gpt2.layers);
    DT_TRY(forward(model, batch, batch, err));
    DT_TRY(dt_gpt2_head_norm(model, last, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    DT_TRY(dt_model_before_unit(model, 0, true, err));
    DT_TRY(dt_gpt2_head_train(model, last, &batch->inputs[DT_GPT2_TARGETS], loss_scale, err));
    DT_TRY(backward(model, batch, err));
out:
    return st;
}

/* Laid out once more: the pass may have come from a graph, and another shape before it. */
static dt_status loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err)
{
    const dt_gpt2_state *state = model->state;

    lay_out(model, batch, true);
    return model->device->ops->sum(model->device, loss_sum, &state->losses, err);
}

/* Final norm of a pass without backward that is laid out; unit 0 is in use when it returns. */
static dt_status infer(dt_model *model, const dt_batch *batch, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(forward(model, batch, NULL, err));
    DT_TRY(
        dt_gpt2_head_norm(model, block_input(model->state, (int)model->config.gpt2.layers), err));
out:
    return st;
}

static dt_status evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                          int64_t *counted, dt_error *err)
{
    const dt_tensor *targets = &batch->inputs[DT_GPT2_TARGETS];
    dt_gpt2_state *state = model->state;
    dt_device *device = model->device;
    int64_t rows = dt_tensor_elems(targets);
    dt_status st = DT_OK;

    DT_ASSERT(targets->data);
    lay_out(model, batch, false);
    DT_TRY(infer(model, batch, err));
    DT_TRY(dt_gpt2_head_evaluate(model, targets, err));
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

    DT_ASSERT(last > 0 && last <= batch->inputs[DT_GPT2_TOKENS].dim[1]);
    lay_out(model, batch, false);
    DT_TRY(infer(model, batch, err));
    DT_TRY(dt_gpt2_head_logits(model, last, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}

static dt_status extend(dt_model *model, const dt_tensor *tokens, float *logits, dt_error *err)
{
    dt_gpt2_state *state = model->state;
    dt_batch batch = {.inputs[DT_GPT2_TOKENS] = *tokens};
    dt_status st = DT_OK;

    DT_ASSERT(model->config.incremental && tokens->dim[0] == 1);
    DT_ASSERT(state->kept_tokens + tokens->dim[1] <= model->config.gpt2.context);
    lay_out(model, &batch, false);
    dt_gpt2_lay_out_behind(model);
    DT_TRY(infer(model, &batch, err));
    DT_TRY(dt_gpt2_head_logits(model, 1, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    state->kept_tokens += tokens->dim[1];
out:
    return st;
}

static int64_t extended(const dt_model *model)
{
    const dt_gpt2_state *state = model->state;

    return state->kept_tokens;
}

static dt_model_text text(const dt_model *model)
{
    return (dt_model_text){.context = model->config.gpt2.context,
                           .vocab = model->config.gpt2.vocab};
}

const dt_model_kind dt_model_kind_gpt2 = {
    .activation_bytes = dt_gpt2_activation_bytes,
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
