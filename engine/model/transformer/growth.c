/* growth: a translation that grows by a token at a time, in versions side by side. Keys and values of its
 * tokens are kept, a version's one behind another; those of the source once for all versions. */
#include "engine/model/decoder/decoder.h"
#include "engine/model/transformer/model_int.h"

#include "base/banned.h"

/* Token `at` of a version in a layer. */
static void *kept_at(const dt_model *model, int which, int64_t layer, int64_t version, int64_t at)
{
    const dt_transformer_state *state = model->state;
    const dt_tensor *kept = &state->growth.kept[which];
    int64_t context = model->config.decoder.context;
    int64_t row = (layer * model->config.batch + version) * context + at;

    return (unsigned char *)kept->data + (size_t)(row * kept->dim[1]) * dt_dtype_bytes(kept->dtype);
}

static dt_status copy(dt_model *model, void *to, void *from, int64_t elems, dt_error *err)
{
    dt_tensor out = dt_tensor_1d(to, model->config.dtype, elems);
    dt_tensor in = dt_tensor_1d(from, model->config.dtype, elems);

    return model->device->ops->cast(model->device, &out, &in, err);
}

dt_status dt_transformer_grow(dt_transformer_call *c, dt_qkv *views, dt_error *err)
{
    const dt_transformer_state *state = c->model->state;
    const dt_transformer_growth *growth = &state->growth;
    int64_t C = c->model->config.decoder.embed, heads = c->model->config.decoder.heads;
    int64_t context = c->model->config.decoder.context;
    dt_tensor *qkv = &c->block->qkv;
    size_t elem = dt_dtype_bytes(qkv->dtype);
    dt_tensor all = dt_tensor_3d(kept_at(c->model, growth->now, c->layer, 0, 0), qkv->dtype,
                                 qkv->dim[0], context, 2 * C);
    dt_status st = DT_OK;

    for (int64_t k = 0; k < qkv->dim[0]; k++)
        DT_TRY(copy(c->model, kept_at(c->model, growth->now, c->layer, k, growth->tokens),
                    (unsigned char *)qkv->data + (size_t)(k * 3 * C + C) * elem, 2 * C, err));
    views->k = dt_heads_of(&all, 0, heads, C / heads);
    views->v = dt_heads_of(&all, C, heads, C / heads);
    views->k.rows = views->v.rows = growth->tokens + 1;
out:
    return st;
}

/* A layer's part of what is kept of the source, (1,S,2C). */
static dt_tensor source_of(const dt_model *model, int layer)
{
    const dt_transformer_state *state = model->state;
    const dt_tensor *encoded = &state->growth.encoded;
    size_t bytes = (size_t)(encoded->dim[1] * encoded->dim[2]) * dt_dtype_bytes(encoded->dtype);

    return dt_tensor_3d((unsigned char *)encoded->data + (size_t)layer * bytes, encoded->dtype, 1,
                        state->growth.source, encoded->dim[2]);
}

/* Every version looks at the same rows. */
void dt_transformer_view_source(const dt_transformer_call *c, dt_qkv *views)
{
    int64_t C = c->model->config.decoder.embed, heads = c->model->config.decoder.heads;
    dt_tensor kv = source_of(c->model, c->layer);

    views->k = dt_heads_of(&kv, 0, heads, C / heads);
    views->v = dt_heads_of(&kv, C, heads, C / heads);
    views->k.batch = views->v.batch = views->q.batch;
    views->k.sequence_stride = views->v.sequence_stride = 0;
}

/* Keys and values of the source for a block of the decoder. */
static dt_status keep_source(dt_model *model, int layer, dt_error *err)
{
    const dt_transformer_state *state = model->state;
    int unit = state->decoder.first_layer + layer + 1;
    dt_tensor params[DT_TRANSFORMER_BLOCK_PARAMS] = {0}, kv = source_of(model, layer), w, b;
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
            DT_TRY(copy(model, kept_at(model, 1 - growth->now, layer, k, 0),
                        kept_at(model, growth->now, layer, parents[k], 0), elems, err));
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
