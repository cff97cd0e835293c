/* translate: a translation that grows by a token at a time, in versions side by side. */
#include "engine/model/decoder/decoder.h"
#include "engine/model/transformer/model_int.h"

#include "base/banned.h"

/* Keys and values of the source for a block of the decoder. */
static dt_status keep_source(dt_model *model, int layer, dt_error *err)
{
    const dt_transformer_state *state = model->state;
    int unit = state->decoder.first_layer + layer + 1;
    dt_tensor params[DT_TRANSFORMER_BLOCK_PARAMS] = {0},
              kv = dt_transformer_kept_source(model, layer), w, b;
    dt_status st = DT_OK;

    DT_TRY(dt_model_before_unit(model, unit, false, err));
    for (int i = DT_TRANSFORMER_CROSS_K_W; i <= DT_TRANSFORMER_CROSS_V_B; i++)
        params[i] = dt_transformer_weight(model, unit, i);
    w = dt_decoder_joined(params, DT_TRANSFORMER_CROSS_K_W, DT_TRANSFORMER_CROSS_V_W);
    b = dt_decoder_joined(params, DT_TRANSFORMER_CROSS_K_B, DT_TRANSFORMER_CROSS_V_B);
    DT_TRY(model->device->ops->matmul_forward(model->device, &kv, dt_transformer_encoded(model), &w,
                                              &b, err));
    DT_TRY(dt_model_after_unit(model, unit, false, err));
out:
    return st;
}

static dt_status blocks(dt_model *model, const dt_transformer_side *side, dt_error *err)
{
    return dt_model_blocks_forward(model, side->first_layer, side->first_layer + side->layers,
                                   dt_transformer_block_forward, NULL, err);
}

dt_status dt_transformer_translate(dt_model *model, const dt_tensor *source, dt_error *err)
{
    dt_transformer_state *state = model->state;
    dt_status st = DT_OK;

    DT_ASSERT(model->config.incremental && source->dim[0] == 1 &&
              source->dim[1] <= model->config.tokens);
    dt_transformer_lay_out(model, 1, source->dim[1], 1, false);
    state->growth.decoding = false;
    state->growth.tokens = 0;
    state->growth.versions = 1;
    state->growth.source = source->dim[1];
    DT_TRY(dt_model_before_unit(model, 0, false, err));
    DT_TRY(model->device->ops->row_lengths(model->device, &state->lengths, source,
                                           (int32_t)model->config.transformer.pad, err));
    DT_TRY(dt_transformer_embed(model, &state->encoder, source, 0, NULL, err));
    DT_TRY(blocks(model, &state->encoder, err));
    DT_TRY(dt_transformer_norm_end(model, &state->encoder, err));
    for (int layer = 0; layer < state->decoder.layers; layer++)
        DT_TRY(keep_source(model, layer, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}

/* What each version continues becomes its own. */
static dt_status take_parents(dt_model *model, int64_t versions, const int32_t *parents,
                              dt_error *err)
{
    dt_transformer_state *state = model->state;
    dt_transformer_growth *growth = &state->growth;
    int64_t elems = growth->tokens * growth->kept[0].dim[1];
    bool same = true;
    dt_status st = DT_OK;

    for (int64_t k = 0; parents != NULL && k < versions; k++) {
        DT_ASSERT(parents[k] >= 0 && parents[k] < growth->versions);
        same = same && parents[k] == k;
    }
    growth->versions = versions;
    if (growth->tokens == 0 || same)
        return DT_OK;
    for (int layer = 0; layer < state->decoder.layers; layer++)
        for (int64_t k = 0; k < versions; k++)
            DT_TRY(dt_transformer_copy_kept(
                model, dt_transformer_kept_at(model, 1 - growth->now, layer, k, 0),
                dt_transformer_kept_at(model, growth->now, layer, parents[k], 0), elems, err));
    growth->now = 1 - growth->now;
out:
    return st;
}

dt_status dt_transformer_translate_next(dt_model *model, const dt_tensor *previous,
                                        const int32_t *parents, float *logits, dt_error *err)
{
    dt_transformer_state *state = model->state;
    int64_t versions = previous->dim[0];
    dt_status st = DT_OK;

    DT_ASSERT(previous->dim[1] == 1 && versions <= model->config.batch);
    DT_ASSERT(state->growth.tokens < model->config.decoder.context);
    dt_transformer_lay_out(model, versions, 1, 1, false);
    state->growth.decoding = true;
    DT_TRY(dt_model_before_unit(model, 0, false, err));
    DT_TRY(take_parents(model, versions, parents, err));
    DT_TRY(dt_transformer_embed(model, &state->decoder, previous, state->growth.tokens, NULL, err));
    DT_TRY(blocks(model, &state->decoder, err));
    DT_TRY(dt_transformer_norm_end(model, &state->decoder, err));
    DT_TRY(dt_transformer_head_logits(model, 1, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    state->growth.tokens++;
out:
    return st;
}
