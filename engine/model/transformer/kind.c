/* kind: whole passes: incremental translation of several sentences, training and evaluation. */
#include <stdlib.h>

#include "engine/model/transformer/model_int.h"
#include "engine/model/vocabulary.h"
#include "recipes/architecture/decoder.h"

/* translate: extends translations of several sentences by one token at a time, each with several
 * hypotheses. */

/* Cache the keys and values of the source for a block of the decoder. */
static dt_status keep_source(dt_model *model, int layer, dt_error *err)
{
    const dt_transformer_state *state = model->state;
    int unit = state->decoder.first_layer + layer + 1;
    dt_tensor params[DT_TRANSFORMER_BLOCK_PARAMS] = {0},
              kv = dt_transformer_kept_source(model, layer, state->growth.sentence);
    dt_block_call block = {.model = model, .layer = unit - 1, .w = params};
    dt_linear linear;
    dt_status st = DT_OK;

    DT_TRY(dt_model_before_unit(model, unit, false, err));
    for (int i = DT_TRANSFORMER_CROSS_K_W; i <= DT_TRANSFORMER_CROSS_V_B; i++)
        params[i] = dt_transformer_weight(model, unit, i);
    linear = dt_linear_of(&block, DT_TRANSFORMER_CROSS_K_W, DT_TRANSFORMER_CROSS_V_W,
                          DT_TRANSFORMER_CROSS_K_B, DT_TRANSFORMER_CROSS_V_B, DT_LINEAR_ROWS);
    DT_TRY(dt_linear_forward(model, &linear, &kv, dt_transformer_encoded(model), err));
    DT_TRY(dt_model_after_unit(model, unit, false, err));
out:
    return st;
}

static dt_status blocks_without_dropout(dt_model *model, const dt_transformer_side *side,
                                        dt_error *err)
{
    return dt_model_blocks_forward(model, side->first_layer, side->first_layer + side->layers,
                                   dt_transformer_block_forward, NULL, err);
}

/* --- functions of dt_model_passes */

static dt_status transformer_translate(dt_model *model, int64_t sentence, const dt_tensor *source,
                                       dt_error *err)
{
    dt_transformer_state *state = model->state;
    dt_transformer_growth *growth = &state->growth;
    dt_status st = DT_OK;

    DT_ASSERT(model->config.incremental && source->dim[0] == 1 &&
              source->dim[1] <= model->config.tokens);
    DT_ASSERT(sentence >= 0 && sentence < dt_translations_sentences(&model->config));
    dt_transformer_lay_out(model, 1, source->dim[1], 1, false);
    growth->decoding = false;
    growth->sentence = sentence;
    growth->tokens[sentence] = 0;
    growth->source[sentence] = source->dim[1];
    DT_TRY(dt_model_before_unit(model, 0, false, err));
    DT_TRY(model->device->ops->row_lengths(model->device, &state->lengths, source,
                                           (int32_t)model->config.transformer.pad, err));
    DT_TRY(dt_transformer_embed(model, &state->encoder, source, NULL, err));
    DT_TRY(blocks_without_dropout(model, &state->encoder, err));
    DT_TRY(dt_transformer_norm_end(model, &state->encoder, err));
    for (int layer = 0; layer < state->decoder.layers; layer++)
        DT_TRY(keep_source(model, layer, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}

/* Copy the cache of each hypothesis's parent to it. */
static dt_status take_parents(dt_model *model, int64_t rows, const int32_t *parents, dt_error *err)
{
    const dt_transformer_state *state = model->state;
    int64_t versions = dt_translations_versions(&model->config);
    dt_status st = DT_OK;

    for (int64_t k = 0; k < rows; k++) {
        int64_t from = parents[k], tokens = state->growth.tokens[k / versions];

        DT_ASSERT(from / versions == k / versions && parents[from] == from);
        if (from != k && tokens > 0)
            DT_TRY(dt_transformer_copy_version(model, k, from, tokens, err));
    }
out:
    return st;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Copy positions and lengths to the device. */
static dt_status place_each(dt_model *model, int64_t rows, dt_error *err)
{
    int64_t versions = dt_translations_versions(&model->config), sentences = rows / versions;
    dt_transformer_state *state = model->state;
    dt_transformer_growth *growth = &state->growth;
    int32_t *places = growth->on_host, *lengths = places + rows, *sources = lengths + rows;
    dt_device *device = model->device;
    dt_status st = DT_OK;

    growth->longest = growth->farthest = 0;
    for (int64_t k = 0; k < rows; k++) {
        DT_ASSERT(growth->tokens[k / versions] < model->config.decoder.context);
        places[k] = (int32_t)growth->tokens[k / versions];
        lengths[k] = places[k] + 1;
        growth->longest = larger(growth->longest, lengths[k]);
    }
    for (int64_t i = 0; i < sentences; i++) {
        sources[i] = (int32_t)growth->source[i];
        growth->farthest = larger(growth->farthest, growth->source[i]);
    }
    growth->places.dim[0] = growth->lengths.dim[0] = rows;
    growth->sources.dim[0] = sentences;
    DT_TRY(
        device->copy_in(device, growth->places.data, places, (size_t)rows * sizeof *places, err));
    DT_TRY(device->copy_in(device, growth->lengths.data, lengths, (size_t)rows * sizeof *lengths,
                           err));
    DT_TRY(device->copy_in(device, growth->sources.data, sources,
                           (size_t)sentences * sizeof *sources, err));
out:
    return st;
}

static dt_status transformer_translate_next(dt_model *model, const dt_tensor *previous,
                                            const int32_t *parents, float *logits, dt_error *err)
{
    dt_transformer_state *state = model->state;
    int64_t rows = previous->dim[0], versions = dt_translations_versions(&model->config);
    dt_status st = DT_OK;

    DT_ASSERT(previous->dim[1] == 1 && rows > 0 && rows % versions == 0 &&
              rows / versions <= dt_translations_sentences(&model->config));
    dt_transformer_lay_out(model, rows, 1, 1, false);
    state->growth.decoding = true;
    DT_TRY(dt_model_before_unit(model, 0, false, err));
    DT_TRY(take_parents(model, rows, parents, err));
    DT_TRY(place_each(model, rows, err));
    DT_TRY(dt_transformer_embed_each(model, previous, err));
    DT_TRY(blocks_without_dropout(model, &state->decoder, err));
    DT_TRY(dt_transformer_norm_end(model, &state->decoder, err));
    DT_TRY(dt_transformer_head_logits(model, 1, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    for (int64_t i = 0; i < rows / versions; i++)
        state->growth.tokens[i]++;
out:
    return st;
}

extern const dt_model_kind dt_transformer_kind;

static bool is_sinusoidal(const dt_model *model)
{
    return model->config.transformer.positions == DT_POSITIONS_SINUSOIDAL;
}

/* --- open */

static dt_status open_side(dt_transformer_side *side, int64_t layers, dt_error *err)
{
    side->blocks = calloc((size_t)layers, sizeof *side->blocks);
    side->stream = calloc((size_t)layers + 1, sizeof *side->stream);
    if (!side->blocks || !side->stream)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the state of the model");
    return DT_OK;
}

static dt_status open_model(dt_model *model, dt_error *err)
{
    const dt_model_config *config = &model->config;
    dt_transformer_state *state = calloc(1, sizeof *state);
    dt_status st = DT_OK;

    model->state = state;
    if (!state)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    state->logits_bytes = dt_decoder_logits_bytes(config);
    state->wide_chunks = !model->device->host_reads;
    DT_TRY(open_side(&state->encoder, config->decoder.layers, err));
    DT_TRY(open_side(&state->decoder, config->transformer.decoder_layers, err));
    DT_TRY(dt_transformer_open_growth(model, err));
    state->targets = calloc((size_t)(config->batch * config->tokens), sizeof *state->targets);
    if (!state->targets)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    st = dt_device_arena_open(&state->arena, model->device, model->activation_bytes, err);
    if (st)
        dt_error_prefix(err, "activations of %lld blocks over %lld x %lld tokens",
                        (long long)(config->decoder.layers + config->transformer.decoder_layers),
                        (long long)config->batch, (long long)config->tokens);
    DT_TRY(st);
    dt_transformer_lay_out(model, 1, 1, 1, !config->inference);
    if (is_sinusoidal(model))
        DT_TRY(
            dt_sinusoids_fill(model->device, &state->positions, config->transformer.pad + 1, err));
out:
    return st;
}

static void close_model(dt_model *model)
{
    dt_transformer_state *state = model->state;

    if (!state)
        return;
    dt_device_arena_close(&state->arena);
    dt_transformer_close_growth(&state->growth);
    free(state->targets);
    free(state->encoder.blocks);
    free(state->encoder.stream);
    free(state->decoder.blocks);
    free(state->decoder.stream);
    free(state);
    model->state = NULL;
}

/* --- passes */

static dt_status blocks(dt_model *model, dt_transformer_side *side, const dt_batch *dropout,
                        dt_error *err)
{
    return dt_model_blocks_forward(model, side->first_layer, side->first_layer + side->layers,
                                   dt_transformer_block_forward, dropout, err);
}

/* Run encoder and decoder, up to the head's input. Unit 0 is in use when it returns. */
static dt_status forward(dt_model *model, const dt_batch *batch, const dt_batch *dropout,
                         dt_error *err)
{
    const dt_tensor *source = &batch->inputs[DT_TRANSFORMER_SOURCE];
    dt_transformer_state *state = model->state;
    dt_status st = DT_OK;

    state->growth.decoding = false;
    DT_TRY(dt_model_before_unit(model, 0, false, err));
    DT_TRY(model->device->ops->row_lengths(model->device, &state->lengths, source,
                                           (int32_t)model->config.transformer.pad, err));
    DT_TRY(dt_transformer_embed(model, &state->encoder, source, dropout, err));
    DT_TRY(blocks(model, &state->encoder, dropout, err));
    DT_TRY(dt_transformer_norm_end(model, &state->encoder, err));
    DT_TRY(dt_transformer_embed(model, &state->decoder, &batch->inputs[DT_TRANSFORMER_PREVIOUS],
                                dropout, err));
    DT_TRY(blocks(model, &state->decoder, dropout, err));
    DT_TRY(dt_transformer_norm_end(model, &state->decoder, err));
out:
    return st;
}

/* Propagate the gradient of a side's output down to its embedding. */
static dt_status side_backward(dt_model *model, dt_transformer_side *side, const dt_tensor *dend,
                               const dt_tensor *tokens, const dt_batch *batch, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_transformer_norm_end_backward(model, side, dend, err));
    DT_TRY(dt_model_blocks_backward(model, side->first_layer, side->first_layer + side->layers,
                                    dt_transformer_block_backward, batch, err));
    DT_TRY(dt_transformer_embed_backward(model, side, tokens, batch, err));
out:
    return st;
}

static dt_status backward(dt_model *model, const dt_batch *batch, dt_error *err)
{
    dt_transformer_state *state = model->state;
    dt_tensor dhead =
        dt_transformer_scratch(model, &state->decoder, state->dread, model->config.decoder.embed);
    dt_status st = DT_OK;

    DT_TRY(side_backward(model, &state->decoder, &dhead, &batch->inputs[DT_TRANSFORMER_PREVIOUS],
                         batch, err));
    DT_TRY(side_backward(model, &state->encoder, &state->dencoded,
                         &batch->inputs[DT_TRANSFORMER_SOURCE], batch, err));
    DT_TRY(dt_model_after_unit(model, 0, true, err));
    DT_TRY(dt_model_grads_ready(model, 0, err));
out:
    return st;
}

static bool is_ids(const dt_tensor *ids, const dt_model_config *config)
{
    return ids->data && ids->dtype == DT_I32 && ids->ndim == 2 && ids->dim[0] > 0 &&
           ids->dim[1] > 0 && ids->dim[1] <= config->decoder.context &&
           ids->dim[0] * ids->dim[1] <= config->batch * config->tokens;
}

/* Lay out a pass of the batch's shape. Asserts that the model was opened for such a batch. */
static void lay_out(dt_model *model, const dt_batch *batch, bool with_backward)
{
    const dt_tensor *source = &batch->inputs[DT_TRANSFORMER_SOURCE];
    const dt_tensor *previous = &batch->inputs[DT_TRANSFORMER_PREVIOUS];
    const dt_tensor *targets = &batch->inputs[DT_TRANSFORMER_TARGETS];

    DT_ASSERT(is_ids(source, &model->config) && is_ids(previous, &model->config));
    DT_ASSERT(source->dim[0] == previous->dim[0]);
    DT_ASSERT(!targets->data || dt_tensor_elems(targets) == dt_tensor_elems(previous));
    dt_transformer_lay_out(model, source->dim[0], source->dim[1], previous->dim[1], with_backward);
}

static dt_status pass(dt_model *model, const dt_batch *batch, const double *loss_scale,
                      dt_error *err)
{
    const dt_tensor *targets = &batch->inputs[DT_TRANSFORMER_TARGETS];
    dt_status st = DT_OK;

    DT_ASSERT(!model->config.inference && targets->data);
    lay_out(model, batch, true);
    DT_TRY(forward(model, batch, batch, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    DT_TRY(dt_model_before_unit(model, 0, true, err));
    DT_TRY(dt_transformer_head_train(model, targets, loss_scale, err));
    DT_TRY(backward(model, batch, err));
out:
    return st;
}

/* Lays out the pass again: it may have been replayed from a graph after a pass of another shape. */
static dt_status loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err)
{
    const dt_transformer_state *state = model->state;

    lay_out(model, batch, true);
    return model->device->ops->sum(model->device, loss_sum, &state->losses, err);
}

static dt_status evaluate(dt_model *model, const dt_batch *batch, double *loss_sum, double *counted,
                          dt_error *err)
{
    const dt_tensor *targets = &batch->inputs[DT_TRANSFORMER_TARGETS];
    dt_transformer_state *state = model->state;
    dt_status st = DT_OK;

    DT_ASSERT(targets->data);
    lay_out(model, batch, false);
    DT_TRY(forward(model, batch, NULL, err));
    DT_TRY(dt_transformer_head_evaluate(model, targets, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    DT_TRY(dt_token_head_sum(model->device, &state->losses, targets, NULL, state->targets, loss_sum,
                             counted, err));
out:
    return st;
}

static dt_status logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                        dt_error *err)
{
    dt_status st = DT_OK;

    DT_ASSERT(last > 0 && last <= batch->inputs[DT_TRANSFORMER_PREVIOUS].dim[1]);
    lay_out(model, batch, false);
    DT_TRY(forward(model, batch, NULL, err));
    DT_TRY(dt_transformer_head_logits(model, last, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}

static const dt_model_passes passes = {
    .activation_bytes = dt_transformer_activation_bytes,
    .open = open_model,
    .close = close_model,
    .pass = pass,
    .loss = loss,
    .evaluate = evaluate,
    .logits = logits,
    .replace = dt_transformer_replace,
    .translate = transformer_translate,
    .translate_next = transformer_translate_next,
};

const dt_model_kind dt_transformer_kind = {&passes, NULL};
