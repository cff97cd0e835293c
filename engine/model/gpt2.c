#include <math.h>
#include <stdlib.h>

#include "engine/model/gpt2_int.h"
#include "engine/progress.h"

#include "base/banned.h"

dt_status dt_gpt2_open(dt_model *model, dt_error *err)
{
    const dt_model_config *config = &model->config;
    dt_status st = DT_OK;

    DT_TRY(dt_gpt2_params_make(model, err));
    model->state = calloc(1, sizeof *model->state);
    if (!model->state)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    model->state->logits_bytes = DT_GPT2_LOGITS_BYTES;
    model->state->blocks = calloc((size_t)config->layers, sizeof *model->state->blocks);
    if (!model->state->blocks)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    model->activation_bytes = dt_gpt2_activation_bytes(config);
    st = dt_device_arena_open(&model->state->arena, model->device, model->activation_bytes, err);
    if (st)
        dt_error_prefix(err, "activations of %lld blocks over %lld x %lld tokens",
                        (long long)config->layers, (long long)config->batch,
                        (long long)config->tokens);
    DT_TRY(st);
    model->state->targets =
        calloc((size_t)(config->batch * config->tokens), sizeof *model->state->targets);
    if (!model->state->targets)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the targets of a batch");
    if (config->positions == DT_POSITIONS_SINUSOIDAL)
        DT_TRY(dt_gpt2_positions_fill(model, err));
out:
    return st;
}

void dt_gpt2_close(dt_model *model)
{
    if (!model->state)
        return;
    dt_device_arena_close(&model->state->arena);
    free(model->state->targets);
    free(model->state->blocks);
    free(model->state);
    model->state = NULL;
}

dt_philox_key dt_gpt2_dropout_key(const dt_batch *batch, int layer, dt_philox_op op)
{
    dt_philox_key key = {.seed = batch->seed,
                         .step = batch->step,
                         .micro_step = batch->micro_step,
                         .data_rank = batch->data_rank,
                         .layer = (uint32_t)layer,
                         .op = op,
                         .clock = batch->clock};
    return key;
}

bool dt_gpt2_drops(const dt_model *model, const dt_batch *dropout)
{
    return dropout && model->config.dropout > 0;
}

static double embedding_scale(const dt_model_config *config)
{
    return config->scale_embedding ? sqrt((double)config->embed) : 1;
}

static dt_status before(dt_model *model, int unit, bool backward, dt_error *err)
{
    const dt_model_hooks *hooks = model->hooks;

    dt_progress_made();
    return hooks && hooks->before_unit ? hooks->before_unit(hooks->self, unit, backward, err)
                                       : DT_OK;
}

static dt_status after(dt_model *model, int unit, bool backward, dt_error *err)
{
    const dt_model_hooks *hooks = model->hooks;

    return hooks && hooks->after_unit ? hooks->after_unit(hooks->self, unit, backward, err) : DT_OK;
}

static dt_status grads_ready(dt_model *model, int unit, dt_error *err)
{
    const dt_model_hooks *hooks = model->hooks;

    return hooks && hooks->unit_grads_ready ? hooks->unit_grads_ready(hooks->self, unit, err)
                                            : DT_OK;
}

/* The rows of the position table from `first` on. */
static dt_tensor positions_from(const dt_model *model, int64_t first)
{
    dt_tensor table = model->config.positions == DT_POSITIONS_SINUSOIDAL
                          ? model->state->positions
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

    DT_TRY(before(model, 0, false, err));
    wte = dt_gpt2_weight(model, 0, DT_GPT2_WTE);
    wpe = positions_from(model, state->first_position);
    DT_TRY(device->ops->embedding_forward(device, &state->embedded, &batch->tokens, &wte, &wpe,
                                          embedding_scale(&model->config), err));
    if (dt_gpt2_drops(model, dropout)) {
        dt_philox_key key = dt_gpt2_dropout_key(dropout, 0, DT_PHILOX_DROPOUT_EMBEDDING);

        DT_TRY(device->ops->dropout_forward(device, &state->embedded, &state->embedded,
                                            model->config.dropout, &key, err));
    }
    for (int layer = 0; layer < model->config.layers; layer++) {
        DT_TRY(before(model, layer + 1, false, err));
        DT_TRY(dt_gpt2_block_forward(model, layer, block_input(state, layer), dropout, err));
        DT_TRY(after(model, layer + 1, false, err));
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

    for (int layer = (int)model->config.layers - 1; layer >= 0; layer--) {
        const dt_tensor *x = block_input(state, layer);

        DT_TRY(before(model, layer + 1, true, err));
        DT_TRY(dt_gpt2_block_recompute(model, layer, x, batch, err));
        DT_TRY(dt_gpt2_block_backward(model, layer, x, batch, err));
        DT_TRY(after(model, layer + 1, true, err));
        DT_TRY(grads_ready(model, layer + 1, err));
    }
    if (dt_gpt2_drops(model, batch)) {
        dt_philox_key key = dt_gpt2_dropout_key(batch, 0, DT_PHILOX_DROPOUT_EMBEDDING);

        dembedded = state->narrow;
        DT_TRY(device->ops->dropout_backward(device, &dembedded, &state->dstream,
                                             model->config.dropout, &key, err));
    }
    dwte = dt_gpt2_grad(model, 0, DT_GPT2_WTE);
    dwpe = dt_gpt2_grad(model, 0, DT_GPT2_WPE);
    DT_TRY(device->ops->embedding_backward(device, &dwte, &dwpe, &dembedded, &batch->tokens,
                                           embedding_scale(&model->config), err));
    DT_TRY(after(model, 0, true, err));
    DT_TRY(grads_ready(model, 0, err));
out:
    return st;
}

/* Takes the batch's shape; a batch that the model was not opened for is a bug. */
static void lay_out(dt_model *model, const dt_batch *batch, bool with_backward)
{
    const dt_model_config *config = &model->config;
    const dt_tensor *tokens = &batch->tokens;

    DT_ASSERT(tokens->data && tokens->dtype == DT_I32 && tokens->ndim == 2);
    DT_ASSERT(tokens->dim[0] > 0 && tokens->dim[1] > 0 && tokens->dim[1] <= config->context);
    DT_ASSERT(tokens->dim[0] * tokens->dim[1] <= config->batch * config->tokens);
    DT_ASSERT(!batch->targets.data || dt_tensor_elems(&batch->targets) == dt_tensor_elems(tokens));
    dt_gpt2_lay_out(model, tokens->dim[0], tokens->dim[1], with_backward);
}

dt_status dt_model_pass(dt_model *model, const dt_batch *batch, double loss_scale, dt_error *err)
{
    dt_gpt2_state *state = model->state;
    const dt_tensor *last;
    dt_status st = DT_OK;

    DT_ASSERT(!model->config.inference && batch->targets.data);
    lay_out(model, batch, true);
    last = block_input(state, (int)model->config.layers);
    DT_TRY(forward(model, batch, batch, err));
    DT_TRY(dt_gpt2_head_norm(model, last, err));
    DT_TRY(after(model, 0, false, err));
    DT_TRY(before(model, 0, true, err));
    DT_TRY(dt_gpt2_head_train(model, last, &batch->targets, loss_scale, err));
    DT_TRY(backward(model, batch, err));
out:
    return st;
}

/* Laid out once more: the pass may have come from a graph, and another shape before it. */
dt_status dt_model_loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err)
{
    lay_out(model, batch, true);
    return model->device->ops->sum(model->device, loss_sum, &model->state->losses, err);
}

/* Final norm of a pass without backward that is laid out; unit 0 is in use when it returns. */
static dt_status infer(dt_model *model, const dt_batch *batch, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(forward(model, batch, NULL, err));
    DT_TRY(dt_gpt2_head_norm(model, block_input(model->state, (int)model->config.layers), err));
out:
    return st;
}

dt_status dt_model_evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                            int64_t *counted, dt_error *err)
{
    int64_t rows = dt_tensor_elems(&batch->tokens);
    dt_status st = DT_OK;

    DT_ASSERT(batch->targets.data);
    lay_out(model, batch, false);
    DT_TRY(infer(model, batch, err));
    DT_TRY(dt_gpt2_head_evaluate(model, &batch->targets, err));
    DT_TRY(after(model, 0, false, err));
    DT_TRY(model->device->ops->sum(model->device, loss_sum, &model->state->losses, err));
    DT_TRY(model->device->copy_out(model->device, model->state->targets, batch->targets.data,
                                   (size_t)rows * sizeof(int32_t), err));
    *counted = 0;
    for (int64_t i = 0; i < rows; i++)
        *counted += model->state->targets[i] >= 0;
out:
    return st;
}

dt_status dt_model_logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                          dt_error *err)
{
    dt_status st = DT_OK;

    DT_ASSERT(last > 0 && last <= batch->tokens.dim[1]);
    lay_out(model, batch, false);
    DT_TRY(infer(model, batch, err));
    DT_TRY(dt_gpt2_head_logits(model, last, logits, err));
    DT_TRY(after(model, 0, false, err));
out:
    return st;
}

dt_status dt_model_extend(dt_model *model, const dt_tensor *tokens, float *logits, dt_error *err)
{
    dt_gpt2_state *state = model->state;
    dt_batch batch = {.tokens = *tokens};
    dt_status st = DT_OK;

    DT_ASSERT(model->config.incremental && tokens->dim[0] == 1);
    DT_ASSERT(state->kept_tokens + tokens->dim[1] <= model->config.context);
    lay_out(model, &batch, false);
    dt_gpt2_lay_out_behind(model);
    DT_TRY(infer(model, &batch, err));
    DT_TRY(dt_gpt2_head_logits(model, 1, logits, err));
    DT_TRY(after(model, 0, false, err));
    state->kept_tokens += tokens->dim[1];
out:
    return st;
}

int64_t dt_model_extended(const dt_model *model)
{
    return model->state->kept_tokens;
}
