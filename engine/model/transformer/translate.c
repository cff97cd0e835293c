/* translate: extends translations of several sentences by one token at a time, each with several
 * hypotheses. */
#include "engine/model/transformer/model_int.h"

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

static dt_status blocks(dt_model *model, const dt_transformer_side *side, dt_error *err)
{
    return dt_model_blocks_forward(model, side->first_layer, side->first_layer + side->layers,
                                   dt_transformer_block_forward, NULL, err);
}

dt_status dt_transformer_translate(dt_model *model, int64_t sentence, const dt_tensor *source,
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
    DT_TRY(blocks(model, &state->encoder, err));
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

dt_status dt_transformer_translate_next(dt_model *model, const dt_tensor *previous,
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
    DT_TRY(blocks(model, &state->decoder, err));
    DT_TRY(dt_transformer_norm_end(model, &state->decoder, err));
    DT_TRY(dt_transformer_head_logits(model, 1, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    for (int64_t i = 0; i < rows / versions; i++)
        state->growth.tokens[i]++;
out:
    return st;
}
