/* memory: views of parameters, and which activations a pass keeps and where. */
#include "engine/model/transformer/model_int.h"
#include "engine/model/vocabulary.h"
#include "recipes/architecture/decoder.h"

static dt_tensor view(const dt_model *model, int unit, int which, dt_dtype dtype,
                      dt_tensor (*of)(const dt_model *, int unit, int which))
{
    int before = 0;

    if (dt_transformer_lacks(&model->config, unit, which))
        return (dt_tensor){.dtype = dtype};
    for (int i = 0; i < which; i++)
        before += !dt_transformer_lacks(&model->config, unit, i);
    return of(model, unit, before);
}

dt_tensor dt_transformer_weight(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, model->config.dtype, dt_model_weight);
}

dt_tensor dt_transformer_grad(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, DT_F32, dt_model_grad);
}

dt_linear dt_transformer_linear(dt_transformer_call *c, int w_first, int w_last, int b_first,
                                int b_last, dt_linear_cut cut)
{
    const dt_transformer_state *state = c->model->state;
    dt_block_call block = {.model = c->model,
                           .layer = c->side->first_layer + c->layer,
                           .w = c->w,
                           .dw = c->backward ? c->dw : NULL,
                           .dropout = c->dropout,
                           .terms = &state->terms};

    return dt_linear_of(&block, w_first, w_last, b_first, b_last, cut);
}

/* The layout of a pass of a given size, under construction. */
typedef struct layout {
    const dt_model_config *config;
    dt_layout memory;
    int64_t B, S, T;
    /* rows of the larger side, over all sentences: the size of memory that both sides share */
    int64_t rows;
} layout;

static bool is_pre(const layout *plan)
{
    return plan->config->transformer.norm == DT_NORM_PRE;
}

static dt_tensor take(layout *plan, dt_tensor tensor)
{
    tensor.data = dt_layout_take(&plan->memory, dt_tensor_bytes(&tensor));
    return tensor;
}

static dt_tensor take_act(layout *plan, int64_t B, int64_t rows, int64_t columns)
{
    return take(plan, dt_tensor_3d(NULL, plan->config->dtype, B, rows, columns));
}

static dt_tensor take_stat(layout *plan, int64_t elems)
{
    return take(plan, dt_tensor_1d(NULL, DT_F32, elems));
}

/* Memory for `columns` columns of the rows of either side. */
static void *take_shared(layout *plan, int64_t columns)
{
    return take_act(plan, 1, plan->rows, columns).data;
}

/* --- blocks */

/* Size of a side's block, or of one that both sides share: query rows, and rows of the source. */
typedef struct block_size {
    int64_t B, rows, source;
    bool decoder;
} block_size;

static bool has(const block_size *size, int which)
{
    return which != DT_TRANSFORMER_CROSS || size->decoder;
}

static void take_sums(layout *plan, const block_size *size, dt_transformer_block *block)
{
    int64_t C = plan->config->decoder.embed;

    for (int i = 0; i < DT_TRANSFORMER_BRANCHES; i++)
        if (has(size, i) && !(is_pre(plan) && i == DT_TRANSFORMER_PERCEPTRON))
            block->sub[i].sum = take_act(plan, size->B, size->rows, C);
}

static void take_normed(layout *plan, const block_size *size, dt_transformer_block *block)
{
    int64_t C = plan->config->decoder.embed;

    for (int i = 0; i < DT_TRANSFORMER_BRANCHES; i++)
        if (has(size, i) && (is_pre(plan) || i != DT_TRANSFORMER_PERCEPTRON))
            block->sub[i].normed = take_act(plan, size->B, size->rows, C);
}

static void take_stats(layout *plan, const block_size *size, dt_transformer_block *block)
{
    for (int i = 0; i < DT_TRANSFORMER_BRANCHES; i++)
        if (has(size, i)) {
            block->sub[i].mean = take_stat(plan, size->B * size->rows);
            block->sub[i].rstd = take_stat(plan, size->B * size->rows);
        }
}

static dt_tensor take_lse(layout *plan, const block_size *size)
{
    return take(plan,
                dt_tensor_3d(NULL, DT_F32, size->B, dt_decoder_heads(plan->config), size->rows));
}

/* Allocate what matrix products write: 4 A + F per row, and 4 A more in the decoder. */
static void take_products(layout *plan, const block_size *size, dt_transformer_block *block)
{
    int64_t A = dt_transformer_attended(plan->config);

    block->qkv = take_act(plan, size->B, size->rows, 3 * A);
    block->att = take_act(plan, size->B, size->rows, A);
    block->lse = take_lse(plan, size);
    if (size->decoder) {
        block->cross_q = take_act(plan, size->B, size->rows, A);
        block->cross_kv = take_act(plan, size->B, size->source, 2 * A);
        block->cross_att = take_act(plan, size->B, size->rows, A);
        block->cross_lse = take_lse(plan, size);
    }
    block->fc = take_act(plan, size->B, size->rows, dt_transformer_ffn(plan->config));
}

static void reshape(dt_tensor *tensor, int64_t B, int64_t rows)
{
    if (tensor->ndim != 3)
        return;
    tensor->dim[0] = B;
    tensor->dim[1] = rows;
}

/* Give tensors in memory that both sides share the shapes of one side. */
static void shape_block(dt_transformer_block *block, const layout *plan, int64_t rows)
{
    dt_tensor *of_rows[] = {&block->qkv, &block->att, &block->cross_q, &block->cross_att,
                            &block->fc};
    dt_tensor *lse[] = {&block->lse, &block->cross_lse};

    for (size_t i = 0; i < sizeof(of_rows) / sizeof(of_rows[0]); i++)
        reshape(of_rows[i], plan->B, rows);
    reshape(&block->cross_kv, plan->B, plan->S);
    for (size_t i = 0; i < 2; i++) {
        lse[i]->dim[0] = plan->B;
        lse[i]->dim[2] = rows;
    }
    for (int i = 0; i < DT_TRANSFORMER_BRANCHES; i++) {
        reshape(&block->sub[i].sum, plan->B, rows);
        reshape(&block->sub[i].normed, plan->B, rows);
        block->sub[i].mean.dim[0] = block->sub[i].rstd.dim[0] = plan->B * rows;
    }
}

/* The output of the last sublayer is the input of the next block. */
static void put_block(const layout *plan, dt_transformer_side *side, int l,
                      const dt_transformer_block *block, const dt_tensor *stream)
{
    dt_transformer_sublayer *last;

    if (side->blocks == NULL)
        return; /* no blocks: only counting bytes */
    side->blocks[l] = *block;
    side->stream[l + 1] = *stream;
    last = &side->blocks[l].sub[DT_TRANSFORMER_PERCEPTRON];
    *(is_pre(plan) ? &last->sum : &last->normed) = *stream;
}

/* With backward: tensors per block, except those in `shared`. */
static void lay_out_blocks(layout *plan, dt_transformer_side *side,
                           const dt_transformer_block *shared)
{
    block_size size = {plan->B, side->rows, plan->S, side->decoder};
    dt_recompute_kind recompute = plan->config->recompute;
    dt_transformer_block block = *shared;

    shape_block(&block, plan, side->rows);
    for (int l = 0; l < side->layers; l++) {
        dt_tensor stream;

        if (dt_model_keeps_norms(plan->config))
            take_normed(plan, &size, &block);
        if (dt_model_keeps_all(plan->config))
            block.active = take_act(plan, plan->B, side->rows, dt_transformer_ffn(plan->config));
        if (recompute != DT_RECOMPUTE_FULL) {
            take_sums(plan, &size, &block);
            take_stats(plan, &size, &block);
            take_products(plan, &size, &block);
        }
        stream = take_act(plan, plan->B, side->rows, plan->config->decoder.embed);
        put_block(plan, side, l, &block, &stream);
    }
}

/* Allocate the tensors that blocks of both sides share under recompute. */
static void take_what_is_made_again(layout *plan, dt_transformer_block *shared)
{
    block_size size = {1, plan->rows, plan->rows, true};
    dt_recompute_kind recompute = plan->config->recompute;
    dt_tensor normed;

    if (dt_model_keeps_norms(plan->config))
        return;
    normed = take_act(plan, 1, plan->rows, plan->config->decoder.embed);
    for (int i = 0; i < DT_TRANSFORMER_BRANCHES; i++)
        shared->sub[i].normed = normed;
    if (recompute == DT_RECOMPUTE_SELECTIVE)
        return;
    take_sums(plan, &size, shared);
    take_stats(plan, &size, shared);
    take_products(plan, &size, shared);
}

/* A pass without backward: all blocks of both sides share one set of tensors. The stream of a side
 * is one tensor, which the sums (pre) or the norms (post) overwrite. */
static void lay_out_one_block(layout *plan, dt_transformer_state *state)
{
    block_size size = {1, plan->rows, plan->rows, true};
    dt_transformer_side *const sides[] = {&state->encoder, &state->decoder};
    int64_t C = plan->config->decoder.embed;
    dt_tensor normed = {0}, sum = dt_tensor_3d(state->narrow, plan->config->dtype, 1, 1, C);
    dt_transformer_block one = {.fc = {0}};

    if (is_pre(plan))
        normed = take_act(plan, 1, plan->rows, C);
    take_stats(plan, &size, &one);
    take_products(plan, &size, &one);
    for (int s = 0; s < 2; s++) {
        dt_tensor stream = {0};
        dt_transformer_block block = one;

        if (sides[s]->blocks == NULL)
            continue;
        stream = sides[s]->stream[0];
        for (int i = 0; i < DT_TRANSFORMER_BRANCHES; i++) {
            block.sub[i].sum = is_pre(plan) ? stream : sum;
            block.sub[i].normed = is_pre(plan) ? normed : stream;
        }
        shape_block(&block, plan, sides[s]->rows);
        for (int l = 0; l < sides[s]->layers; l++)
            put_block(plan, sides[s], l, &block, &stream);
    }
}

/* --- memory outside the blocks */

static void lay_out_side(layout *plan, dt_transformer_side *side, bool decoder)
{
    const dt_model_config *config = plan->config;
    int64_t C = config->decoder.embed;
    dt_tensor embedded;

    side->decoder = decoder;
    side->first_layer = decoder ? (int)config->decoder.layers : 0;
    side->layers = (int)(decoder ? config->transformer.decoder_layers : config->decoder.layers);
    side->B = plan->B;
    side->rows = decoder ? plan->T : plan->S;
    embedded = take_act(plan, plan->B, side->rows, C);
    if (side->stream != NULL)
        side->stream[0] = embedded;
    if (!is_pre(plan))
        return;
    side->norm = take_act(plan, plan->B, side->rows, C);
    side->norm_mean = take_stat(plan, plan->B * side->rows);
    side->norm_rstd = take_stat(plan, plan->B * side->rows);
}

static void lay_out_logits(layout *plan, dt_transformer_state *state, size_t scratch_bytes,
                           bool backward)
{
    /* without backward, logits are fp32 whatever the model's type */
    size_t elem_bytes = backward ? dt_dtype_bytes(plan->config->dtype) : 4;
    size_t row_bytes = (size_t)dt_decoder_vocab_rows(plan->config) * elem_bytes;
    int64_t most = state->logits_bytes, room;

    if (state->wide_chunks && (int64_t)scratch_bytes > most)
        most = (int64_t)scratch_bytes;
    state->logits_rows = dt_token_head_chunk(&room, plan->B * plan->T, row_bytes, most);
    state->logits = dt_layout_take(&plan->memory, (size_t)room * row_bytes);
}

/* Lay out the blocks' scratch, and the logits over the same memory. */
static void lay_out_scratch(layout *plan, dt_transformer_state *state, bool backward)
{
    int64_t C = plan->config->decoder.embed, F = dt_transformer_ffn(plan->config);
    int64_t A = dt_transformer_attended(plan->config);
    size_t start = plan->memory.bytes, end;

    state->wide = take_shared(plan, backward && F < 3 * A ? 3 * A : F);
    state->wide_gap = (size_t)(plan->rows * A) * dt_dtype_bytes(plan->config->dtype);
    state->narrow = take_shared(plan, C);
    if (backward)
        state->dpart = take_shared(plan, C);
    if (backward && !is_pre(plan))
        state->dsum = take_shared(plan, C);
    end = plan->memory.bytes;
    dt_layout_go_back(&plan->memory, start);
    lay_out_logits(plan, state, end - start, backward);
    if (plan->memory.bytes < end)
        dt_layout_take(&plan->memory, end - plan->memory.bytes);
}

static void lay_out_growth(layout *plan, dt_transformer_growth *growth)
{
    const dt_model_config *config = plan->config;
    int64_t layers = config->transformer.decoder_layers, A = dt_transformer_attended(config);
    int64_t ranks = dt_tensor_ranks(&config->tensor);
    int64_t sentences = dt_translations_sentences(config);
    int64_t versions = sentences * dt_translations_versions(config);
    int64_t context = config->decoder.context;

    growth->kept =
        take(plan, dt_tensor_2d(NULL, config->dtype, layers * versions * context, 2 * A));
    growth->encoded =
        take(plan, dt_tensor_2d(NULL, config->dtype, layers * sentences * context, 2 * A));
    growth->places = take(plan, dt_tensor_2d(NULL, DT_I32, versions, 1));
    growth->lengths = take(plan, dt_tensor_1d(NULL, DT_I32, versions));
    growth->sources = take(plan, dt_tensor_1d(NULL, DT_I32, sentences));
    if (ranks > 1)
        growth->logits =
            take(plan, dt_tensor_3d(NULL, DT_F32, ranks, versions, dt_decoder_vocab_rows(config)));
}

/* What ranks that divide layers need for sums. */
static void lay_out_sums(layout *plan, dt_transformer_state *state, bool backward)
{
    int64_t ranks = dt_tensor_ranks(&plan->config->tensor), C = plan->config->decoder.embed;
    int64_t N = plan->B * plan->T;

    if (ranks == 1)
        return;
    state->part_own = take(plan, dt_tensor_2d(NULL, DT_F32, DT_VOCAB_NUMBERS, N));
    state->part_all = take(plan, dt_tensor_3d(NULL, DT_F32, ranks, DT_VOCAB_NUMBERS, N));
    if (plan->config->dtype == DT_F32)
        return;
    state->terms = take(plan, dt_tensor_2d(NULL, DT_F32, plan->rows, C));
    if (backward)
        state->dencoded_terms = take(plan, dt_tensor_3d(NULL, DT_F32, plan->B, plan->S, C));
}

/* Lay out a pass; only counts bytes if the state has no blocks and streams. */
static void lay_out(layout *plan, dt_transformer_state *state, bool backward)
{
    const dt_model_config *config = plan->config;
    int64_t C = config->decoder.embed;
    dt_transformer_block shared = {.fc = {0}};

    if (config->transformer.positions == DT_POSITIONS_SINUSOIDAL)
        state->positions =
            take(plan, dt_tensor_2d(NULL, config->dtype, config->decoder.context, C));
    if (config->incremental)
        lay_out_growth(plan, &state->growth);
    lay_out_side(plan, &state->encoder, false);
    lay_out_side(plan, &state->decoder, true);
    state->lengths = take(plan, dt_tensor_1d(NULL, DT_I32, plan->B));
    state->losses = take_stat(plan, plan->B * plan->T);
    lay_out_sums(plan, state, backward);
    lay_out_scratch(plan, state, backward);
    if (!backward) {
        lay_out_one_block(plan, state);
        return;
    }
    state->dread = take_shared(plan, C);
    state->dstream = take_shared(plan, C);
    state->dencoded = take_act(plan, plan->B, plan->S, C);
    take_what_is_made_again(plan, &shared);
    lay_out_blocks(plan, &state->encoder, &shared);
    lay_out_blocks(plan, &state->decoder, &shared);
}

/* --- */

static layout plan_of(const dt_model_config *config, int64_t B, int64_t S, int64_t T)
{
    return (layout){.config = config, .B = B, .S = S, .T = T, .rows = B * (S > T ? S : T)};
}

/* Counts as if every row were a sentence of one token, so that each row has a length entry: the
 * worst case. */
static size_t count_bytes(const dt_model_config *config, bool backward)
{
    layout plan = plan_of(config, config->batch * config->tokens, 1, 1);
    dt_transformer_state state = {.logits_bytes = dt_decoder_logits_bytes(config)};

    lay_out(&plan, &state, backward);
    return plan.memory.bytes;
}

size_t dt_transformer_activation_bytes(const dt_model_kind *kind, const dt_model_config *config)
{
    size_t without = count_bytes(config, false);
    size_t with = config->inference ? 0 : count_bytes(config, true);

    return with > without ? with : without;
}

void dt_transformer_lay_out(dt_model *model, int64_t B, int64_t S, int64_t T, bool backward)
{
    dt_transformer_state *state = model->state;
    layout plan = plan_of(&model->config, B, S, T);

    plan.memory.arena = &state->arena;
    state->arena.used_bytes = 0;
    lay_out(&plan, state, backward);
}

dt_tensor dt_transformer_scratch(const dt_model *model, const dt_transformer_side *side, void *data,
                                 int64_t columns)
{
    return dt_tensor_3d(data, model->config.dtype, side->B, side->rows, columns);
}
