/* attention: the cache of keys and values of translations, and self and cross attention, forward and
 * backward. */
#include <stdlib.h>

#include "engine/model/transformer/model_int.h"
#include "recipes/architecture/decoder.h"

/* kept: stores the keys and values of translations: those of each hypothesis's tokens, contiguous
 * per hypothesis, and those of each source, shared by its hypotheses. */

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

/* Append the new rows' keys and values to the cache; *views: the whole cache. */
static dt_status transformer_grow(dt_transformer_call *c, dt_qkv *views, dt_error *err)
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

/* View the cached sources and the queries of their hypotheses: *views and *out have one row per
 * hypothesis. The hypotheses of a sentence act as the queries of one sequence. */
static void transformer_view_sources(const dt_transformer_call *c, dt_qkv *views, dt_tensor *out)
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

const dt_tensor *dt_transformer_encoded(const dt_model *model)
{
    const dt_transformer_state *state = model->state;

    return dt_transformer_end_of(model, &state->encoder);
}

/* Whether the pass adds a token to the cached hypotheses. */
static bool grows(const dt_transformer_call *c)
{
    const dt_transformer_state *state = c->model->state;

    return c->side->decoder && state->growth.decoding;
}

/* Mask and dropout arguments: attention to the source skips padding; self attention in the decoder
 * is causal. */
static dt_attention_args args_of(const dt_transformer_call *c, bool cross, dt_philox_key *key)
{
    const dt_transformer_state *state = c->model->state;
    dt_attention_args args = {.mask = DT_MASK_CAUSAL, .key = key};

    if (grows(c)) { /* attends to the cached rows, as many as each sequence has */
        args.mask = DT_MASK_LENGTHS;
        args.key_lengths = cross ? state->growth.sources : state->growth.lengths;
    } else if (cross || !c->side->decoder) {
        args.mask = DT_MASK_LENGTHS;
        args.key_lengths = state->lengths;
    }
    if (c->dropout == NULL || c->model->config.decoder.attention_dropout == 0)
        return args;
    *key = dt_model_dropout_key(c->dropout, c->side->first_layer + c->layer,
                                cross ? DT_PHILOX_DROPOUT_CROSS_ATTENTION
                                      : DT_PHILOX_DROPOUT_ATTENTION);
    args.heads = c->model->config.decoder.heads;
    args.first_head = c->model->config.tensor.rank * dt_decoder_heads(&c->model->config);
    args.p = c->model->config.decoder.attention_dropout;
    return args;
}

/* Views of queries, keys and values: q (B,T,A), kv (B,S,2A). */
static dt_qkv cross_views(const dt_model *model, const dt_tensor *q, const dt_tensor *kv)
{
    int64_t heads = dt_decoder_heads(&model->config), A = dt_transformer_attended(&model->config);

    return (dt_qkv){dt_heads_of(q, 0, heads, A / heads), dt_heads_of(kv, 0, heads, A / heads),
                    dt_heads_of(kv, A, heads, A / heads)};
}

/* Memory of the gradient of the branch's input, and before it of attention's output. */
static dt_tensor read_gradient(const dt_transformer_call *c, int64_t columns)
{
    const dt_transformer_state *state = c->model->state;

    return dt_transformer_scratch(c->model, c->side, state->dread, columns);
}

/* --- linear layers of a block */

static dt_linear qkv(dt_transformer_call *c)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_Q_W, DT_TRANSFORMER_V_W, DT_TRANSFORMER_Q_B,
                                 DT_TRANSFORMER_V_B, DT_LINEAR_ROWS);
}

static dt_linear out_proj(dt_transformer_call *c)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_OUT_W, DT_TRANSFORMER_OUT_W,
                                 DT_TRANSFORMER_OUT_B, DT_TRANSFORMER_OUT_B, DT_LINEAR_COLUMNS);
}

static dt_linear cross_q(dt_transformer_call *c)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_CROSS_Q_W, DT_TRANSFORMER_CROSS_Q_W,
                                 DT_TRANSFORMER_CROSS_Q_B, DT_TRANSFORMER_CROSS_Q_B,
                                 DT_LINEAR_ROWS);
}

static dt_linear cross_kv(dt_transformer_call *c, dt_linear_cut cut)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_CROSS_K_W, DT_TRANSFORMER_CROSS_V_W,
                                 DT_TRANSFORMER_CROSS_K_B, DT_TRANSFORMER_CROSS_V_B, cut);
}

static dt_linear cross_out(dt_transformer_call *c)
{
    return dt_transformer_linear(c, DT_TRANSFORMER_CROSS_OUT_W, DT_TRANSFORMER_CROSS_OUT_W,
                                 DT_TRANSFORMER_CROSS_OUT_B, DT_TRANSFORMER_CROSS_OUT_B,
                                 DT_LINEAR_COLUMNS);
}

/* --- self attention */

/* x (B,rows,C) -> qkv (B,rows,3A) -> att (B,rows,A) -> y (B,rows,C) */
dt_status dt_transformer_attention_forward(dt_transformer_call *c, dt_tensor *y, const dt_tensor *x,
                                           dt_error *err)
{
    dt_device *device = c->model->device;
    const dt_ops *ops = device->ops;
    dt_transformer_block *a = c->block;
    dt_linear in = qkv(c), proj = out_proj(c);
    dt_qkv views = dt_qkv_packed(&a->qkv, dt_decoder_heads(&c->model->config));
    dt_philox_key key = {0};
    dt_attention_args args = args_of(c, false, &key);
    dt_status st = DT_OK;

    DT_TRY(dt_linear_forward(c->model, &in, &a->qkv, x, err));
    if (grows(c))
        DT_TRY(transformer_grow(c, &views, err));
    DT_TRY(ops->attention_forward(device, &a->att, &a->lse, &views, &args, err));
    DT_TRY(dt_linear_forward(c->model, &proj, y, &a->att, err));
out:
    return st;
}

/* dy (B,rows,C) -> datt (B,rows,A) -> dqkv (B,rows,3A) -> dx (B,rows,C) */
dt_status dt_transformer_attention_backward(dt_transformer_call *c, const dt_tensor *dy,
                                            const dt_tensor *x, dt_error *err)
{
    const dt_transformer_state *state = c->model->state;
    dt_transformer_block *a = c->block;
    int64_t heads = dt_decoder_heads(&c->model->config);
    int64_t A = dt_transformer_attended(&c->model->config), C = c->model->config.decoder.embed;
    dt_tensor dqkv = dt_transformer_scratch(c->model, c->side, state->wide, 3 * A);
    dt_tensor datt = read_gradient(c, A), dx = read_gradient(c, C);
    dt_linear in = qkv(c), proj = out_proj(c);
    dt_qkv views = dt_qkv_packed(&a->qkv, heads), dviews = dt_qkv_packed(&dqkv, heads);
    dt_philox_key key = {0};
    dt_attention_args args = args_of(c, false, &key);
    dt_device *device = c->model->device;
    dt_status st = DT_OK;

    DT_TRY(dt_linear_backward(c->model, &proj, &datt, dy, &a->att, err));
    DT_TRY(device->ops->attention_backward(device, &dviews, &datt, &views, &a->att, &a->lse, &args,
                                           err));
    DT_TRY(dt_linear_backward(c->model, &in, &dx, &dqkv, x, err));
out:
    return st;
}

/* --- cross attention */

/* x (B,T,C) -> q (B,T,A); encoded (B,S,C) -> kv (B,S,2A); -> att (B,T,A) -> y (B,T,C) */
dt_status dt_transformer_cross_forward(dt_transformer_call *c, dt_tensor *y, const dt_tensor *x,
                                       dt_error *err)
{
    dt_device *device = c->model->device;
    const dt_ops *ops = device->ops;
    dt_transformer_block *a = c->block;
    dt_linear q = cross_q(c), kv = cross_kv(c, DT_LINEAR_ROWS), proj = cross_out(c);
    dt_qkv views = cross_views(c->model, &a->cross_q, &a->cross_kv);
    dt_tensor att = a->cross_att;
    dt_philox_key key = {0};
    dt_attention_args args = args_of(c, true, &key);
    dt_status st = DT_OK;

    DT_TRY(dt_linear_forward(c->model, &q, &a->cross_q, x, err));
    if (grows(c))
        transformer_view_sources(c, &views, &att);
    else
        DT_TRY(
            dt_linear_forward(c->model, &kv, &a->cross_kv, dt_transformer_encoded(c->model), err));
    DT_TRY(ops->attention_forward(device, &att, &a->cross_lse, &views, &args, err));
    DT_TRY(dt_linear_forward(c->model, &proj, y, &a->cross_att, err));
out:
    return st;
}

/* Gradients from keys and values: of their weights, and of the encoder's output, whose terms the blocks add up in
 * dencoded_terms if ranks divide layers. */
static dt_status keys_backward(dt_transformer_call *c, const dt_tensor *dkv, dt_error *err)
{
    dt_transformer_state *state = c->model->state;
    dt_device *device = c->model->device;
    dt_linear kv = cross_kv(c, DT_LINEAR_WHOLE); /* its sums over ranks are below */
    bool first = c->layer == c->side->layers - 1;
    dt_tensor part = dt_transformer_scratch(c->model, &state->encoder, state->dpart,
                                            c->model->config.decoder.embed);
    dt_tensor term = dt_layer_term(c->model, &part, &state->terms);
    dt_tensor sum = dt_layer_term(c->model, &state->dencoded, &state->dencoded_terms);
    dt_status st = DT_OK;

    DT_TRY(dt_linear_backward(c->model, &kv, first ? &sum : &term, dkv,
                              dt_transformer_encoded(c->model), err));
    if (!first)
        DT_TRY(device->ops->residual_forward(device, &sum, &sum, &term, err));
    if (c->layer == 0)
        DT_TRY(dt_layer_sum(c->model, &state->dencoded, &sum, err));
out:
    return st;
}

/* dy (B,T,C) -> datt (B,T,A) -> dq (B,T,A) -> dx (B,T,C), and dkv (B,S,2A) */
dt_status dt_transformer_cross_backward(dt_transformer_call *c, const dt_tensor *dy,
                                        const dt_tensor *x, dt_error *err)
{
    const dt_transformer_state *state = c->model->state;
    dt_transformer_block *a = c->block;
    int64_t A = dt_transformer_attended(&c->model->config), C = c->model->config.decoder.embed;
    dt_tensor dq = dt_transformer_scratch(c->model, c->side, state->wide, A), dkv;
    dt_tensor datt = read_gradient(c, A), dx = read_gradient(c, C);
    dt_qkv views = cross_views(c->model, &a->cross_q, &a->cross_kv), dviews;
    dt_philox_key key = {0};
    dt_attention_args args = args_of(c, true, &key);
    dt_linear q = cross_q(c), proj = cross_out(c);
    dt_device *device = c->model->device;
    dt_status st = DT_OK;

    dkv = dt_transformer_scratch(c->model, &state->encoder,
                                 (unsigned char *)state->wide + state->wide_gap, 2 * A);
    dviews = cross_views(c->model, &dq, &dkv);
    DT_TRY(dt_linear_backward(c->model, &proj, &datt, dy, &a->cross_att, err));
    DT_TRY(device->ops->attention_backward(device, &dviews, &datt, &views, &a->cross_att,
                                           &a->cross_lse, &args, err));
    DT_TRY(dt_linear_backward(c->model, &q, &dx, &dq, x, err));
    DT_TRY(keys_backward(c, &dkv, err));
out:
    return st;
}
