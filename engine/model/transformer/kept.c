/* kept: stores the keys and values of translations: those of each hypothesis's tokens, contiguous
 * per hypothesis, and those of each source, shared by its hypotheses. */
#include <stdlib.h>

#include "engine/model/transformer/model_int.h"
#include "recipes/architecture/decoder.h"

dt_status dt_transformer_open_growth(dt_model *model, dt_error *err)
{
    dt_transformer_state *state = model->state;
    dt_transformer_growth *growth = &state->growth;
    size_t sentences = (size_t)dt_translations_sentences(&model->config);
    size_t rows = sentences * (size_t)dt_translations_versions(&model->config);

    if (!model->config.incremental)
        return DT_OK;
    growth->tokens = calloc(sentences, sizeof *growth->tokens);
    growth->source = calloc(sentences, sizeof *growth->source);
    growth->on_host = calloc(2 * rows + sentences, sizeof *growth->on_host);
    if (!growth->tokens || !growth->source || !growth->on_host)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %zu translations at once", sentences);
    return DT_OK;
}

void dt_transformer_close_growth(dt_transformer_growth *growth)
{
    free(growth->tokens);
    free(growth->source);
    free(growth->on_host);
}

/* Pointer to token `at` of an entry of the cache in a layer of the decoder. */
static void *kept_at(const dt_model *model, const dt_tensor *kept, int64_t place, int64_t at)
{
    int64_t row = place * model->config.decoder.context + at;

    return (unsigned char *)kept->data + (size_t)(row * kept->dim[1]) * dt_dtype_bytes(kept->dtype);
}

static void *version_at(const dt_model *model, int64_t layer, int64_t version, int64_t at)
{
    const dt_transformer_state *state = model->state;
    int64_t rows =
        dt_translations_sentences(&model->config) * dt_translations_versions(&model->config);

    return kept_at(model, &state->growth.kept, layer * rows + version, at);
}

static void *source_at(const dt_model *model, int64_t layer, int64_t sentence)
{
    const dt_transformer_state *state = model->state;
    int64_t place = layer * dt_translations_sentences(&model->config) + sentence;

    return kept_at(model, &state->growth.encoded, place, 0);
}

static dt_status copy(dt_model *model, void *to, void *from, int64_t rows, dt_error *err)
{
    int64_t elems = rows * 2 * dt_transformer_attended(&model->config);
    dt_tensor out = dt_tensor_1d(to, model->config.dtype, elems);
    dt_tensor in = dt_tensor_1d(from, model->config.dtype, elems);

    return model->device->ops->cast(model->device, &out, &in, err);
}

dt_status dt_transformer_copy_version(dt_model *model, int64_t to, int64_t from, int64_t tokens,
                                      dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t layer = 0; layer < model->config.transformer.decoder_layers; layer++)
        DT_TRY(copy(model, version_at(model, layer, to, 0), version_at(model, layer, from, 0),
                    tokens, err));
out:
    return st;
}

dt_status dt_transformer_replace(dt_model *model, int64_t to, int64_t from, dt_error *err)
{
    int64_t versions = dt_translations_versions(&model->config);
    dt_transformer_state *state = model->state;
    dt_transformer_growth *growth = &state->growth;
    dt_status st = DT_OK;

    DT_ASSERT(from != DT_SEQUENCE_EMPTY);
    if (to == from)
        return DT_OK;
    growth->tokens[to] = growth->tokens[from];
    growth->source[to] = growth->source[from];
    for (int64_t k = 0; growth->tokens[to] > 0 && k < versions; k++)
        DT_TRY(dt_transformer_copy_version(model, to * versions + k, from * versions + k,
                                           growth->tokens[to], err));
    for (int64_t layer = 0; layer < model->config.transformer.decoder_layers; layer++)
        DT_TRY(copy(model, source_at(model, layer, to), source_at(model, layer, from),
                    growth->source[to], err));
out:
    return st;
}

dt_status dt_transformer_grow(dt_transformer_call *c, dt_qkv *views, dt_error *err)
{
    const dt_transformer_state *state = c->model->state;
    const dt_transformer_growth *growth = &state->growth;
    int64_t A = dt_transformer_attended(&c->model->config);
    int64_t heads = dt_decoder_heads(&c->model->config);
    int64_t versions = dt_translations_versions(&c->model->config);
    dt_tensor *qkv = &c->block->qkv;
    size_t elem = dt_dtype_bytes(qkv->dtype);
    dt_tensor all = dt_tensor_3d(version_at(c->model, c->layer, 0, 0), qkv->dtype, qkv->dim[0],
                                 c->model->config.decoder.context, 2 * A);
    dt_status st = DT_OK;

    for (int64_t k = 0; k < qkv->dim[0]; k++)
        DT_TRY(copy(c->model, version_at(c->model, c->layer, k, growth->tokens[k / versions]),
                    (unsigned char *)qkv->data + (size_t)(k * 3 * A + A) * elem, 1, err));
    views->k = dt_heads_of(&all, 0, heads, A / heads);
    views->v = dt_heads_of(&all, A, heads, A / heads);
    views->k.rows = views->v.rows = growth->longest;
out:
    return st;
}

dt_tensor dt_transformer_kept_source(const dt_model *model, int64_t layer, int64_t sentence)
{
    const dt_transformer_state *state = model->state;

    return dt_tensor_3d(source_at(model, layer, sentence), model->config.dtype, 1,
                        state->growth.source[sentence],
                        2 * dt_transformer_attended(&model->config));
}

/* The hypotheses of a sentence act as the queries of one sequence. */
void dt_transformer_view_sources(const dt_transformer_call *c, dt_qkv *views, dt_tensor *out)
{
    const dt_transformer_state *state = c->model->state;
    int64_t A = dt_transformer_attended(&c->model->config);
    int64_t heads = dt_decoder_heads(&c->model->config);
    int64_t versions = dt_translations_versions(&c->model->config),
            sentences = out->dim[0] / versions;
    dt_tensor q = c->block->cross_q;
    dt_tensor kv = dt_tensor_3d(source_at(c->model, c->layer, 0), q.dtype, sentences,
                                c->model->config.decoder.context, 2 * A);

    q.dim[0] = out->dim[0] = sentences;
    q.dim[1] = out->dim[1] = versions;
    views->q = dt_heads_of(&q, 0, heads, A / heads);
    views->k = dt_heads_of(&kv, 0, heads, A / heads);
    views->v = dt_heads_of(&kv, A, heads, A / heads);
    views->k.rows = views->v.rows = state->growth.farthest;
}
