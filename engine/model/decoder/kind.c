/* kind: extends several sequences by tokens (incremental decoding), and dt_decoder_passes. */
#include <stdlib.h>

#include "engine/model/decoder/decoder.h"
#include "engine/model/vocabulary.h"
#include "recipes/architecture/decoder.h"

/* growth: extends sequences incrementally: one sequence by any number of tokens, or each by one
 * token. */

static dt_status finish(dt_model *model, const dt_batch *batch, float *logits, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_infer(model, batch, err));
    DT_TRY(dt_decoder_head_logits(model, 1, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}

static dt_status decoder_extend(dt_model *model, int64_t sequence, const dt_tensor *tokens,
                                float *logits, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_decoder_growth *growth = &state->growth;
    dt_batch batch = {.inputs[DT_DECODER_TOKENS] = *tokens};
    dt_status st = DT_OK;

    DT_ASSERT(model->config.incremental && tokens->dim[0] == 1);
    DT_ASSERT(sequence >= 0 && sequence < dt_decoder_sequences(model));
    DT_ASSERT(growth->tokens[sequence] + tokens->dim[1] <= dt_decoder_kept_room(&model->config));
    dt_decoder_begin(model, &batch);
    growth->sequence = sequence;
    state->first_position = growth->tokens[sequence];
    model->kind->decoder->lay_out_behind(model);
    DT_TRY(finish(model, &batch, logits, err));
    growth->tokens[sequence] += tokens->dim[1];
out:
    return st;
}

/* Copy positions and lengths to the device. */
static dt_status place_each(dt_model *model, int64_t count, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_decoder_growth *growth = &state->growth;
    size_t bytes = (size_t)count * sizeof(int32_t);
    int32_t *places = growth->on_host, *lengths = places + count;
    dt_status st = DT_OK;

    growth->longest = 0;
    for (int64_t k = 0; k < count; k++) {
        DT_ASSERT(growth->tokens[k] > 0 &&
                  growth->tokens[k] < dt_decoder_kept_room(&model->config));
        places[k] = (int32_t)growth->tokens[k];
        lengths[k] = places[k] + 1;
        growth->longest = lengths[k] > growth->longest ? lengths[k] : growth->longest;
    }
    growth->places.dim[0] = growth->lengths.dim[0] = count;
    DT_TRY(model->device->copy_in(model->device, growth->places.data, places, bytes, err));
    DT_TRY(model->device->copy_in(model->device, growth->lengths.data, lengths, bytes, err));
    state->positions = growth->places;
out:
    return st;
}

static dt_status decoder_extend_each(dt_model *model, const dt_tensor *tokens, float *logits,
                                     dt_error *err)
{
    dt_decoder *state = model->state;
    dt_decoder_growth *growth = &state->growth;
    dt_batch batch = {.inputs[DT_DECODER_TOKENS] = *tokens};
    int64_t count = tokens->dim[0];
    dt_status st = DT_OK;

    DT_ASSERT(model->config.incremental && tokens->dim[1] == 1 &&
              count <= dt_decoder_sequences(model));
    if (dt_decoder_sequences(model) == 1)
        return decoder_extend(model, 0, tokens, logits, err);
    dt_decoder_begin(model, &batch);
    growth->each = true;
    DT_TRY(place_each(model, count, err));
    model->kind->decoder->lay_out_behind(model);
    DT_TRY(finish(model, &batch, logits, err));
    for (int64_t k = 0; k < count; k++)
        growth->tokens[k]++;
out:
    return st;
}

static size_t activation_bytes(const dt_model_kind *kind, const dt_model_config *config)
{
    return dt_decoder_count_bytes(kind->decoder, config);
}

static dt_status open_model(dt_model *model, dt_error *err)
{
    const dt_model_config *config = &model->config;
    const dt_decoder_parts *parts = model->kind->decoder;
    size_t layers = (size_t)config->decoder.layers;
    size_t sequences = (size_t)(config->sequences > 0 ? config->sequences : 1);
    dt_decoder *state = calloc(1, sizeof *state);
    dt_status st = DT_OK;

    model->state = state;
    if (!state)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    state->logits_bytes = dt_decoder_logits_bytes(config);
    state->wide_chunks = !model->device->host_reads;
    state->blocks = calloc(layers, parts->block_bytes);
    state->stream = calloc(layers + 1, sizeof *state->stream);
    state->targets = calloc((size_t)(config->batch * config->tokens), sizeof *state->targets);
    state->growth.tokens = calloc(sequences, sizeof *state->growth.tokens);
    state->growth.on_host = calloc(2 * sequences, sizeof *state->growth.on_host);
    if (config->decoder.beta > 0)
        state->pairs.host = calloc((size_t)(2 * config->batch * config->tokens + config->batch),
                                   sizeof *state->pairs.host);
    if (config->decoder.beta > 0 && !state->pairs.host)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    if (!state->blocks || !state->stream || !state->targets || !state->growth.tokens ||
        !state->growth.on_host)
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
    DT_TRY(dt_adapters_open(&state->adapters, model, dt_decoder_block_params(model), err));
out:
    return st;
}

static void close_model(dt_model *model)
{
    dt_decoder *state = model->state;

    if (!state)
        return;
    dt_device_arena_close(&state->arena);
    free(state->growth.tokens);
    free(state->growth.on_host);
    free(state->targets);
    free(state->pairs.host);
    free(state->stream);
    free(state->blocks);
    free(state);
    model->state = NULL;
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
    .pass = dt_decoder_pass,
    .loss = dt_decoder_loss,
    .evaluate = dt_decoder_evaluate,
    .text = text,
    .logits = dt_decoder_logits,
    .extend = decoder_extend,
    .extend_each = decoder_extend_each,
    .replace = dt_decoder_replace,
    .extended = dt_decoder_extended,
};
