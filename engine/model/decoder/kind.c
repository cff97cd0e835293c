/* kind: implements dt_model_passes for decoder-only kinds. */
#include <stdlib.h>

#include "engine/model/decoder/decoder.h"
#include "engine/model/token_head.h"

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
    state->logits_bytes = DT_LOGITS_BYTES;
    state->wide_chunks = !model->device->host_reads;
    state->blocks = calloc(layers, parts->block_bytes);
    state->stream = calloc(layers + 1, sizeof *state->stream);
    state->targets = calloc((size_t)(config->batch * config->tokens), sizeof *state->targets);
    state->growth.tokens = calloc(sequences, sizeof *state->growth.tokens);
    state->growth.on_host = calloc(2 * sequences, sizeof *state->growth.on_host);
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
    .extend = dt_decoder_extend,
    .extend_each = dt_decoder_extend_each,
    .replace = dt_decoder_replace,
    .extended = dt_decoder_extended,
};
