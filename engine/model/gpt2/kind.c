/* kind: which activations a pass of GPT-2 keeps and where, both its ends, and its parts for
 * engine/model/decoder/. */
#include <math.h>

#include "engine/model/gpt2/model_int.h"
#include "engine/model/vocabulary.h"
#include "recipes/architecture/decoder.h"

/* --- memory: functions of dt_decoder_parts */

/* Allocates the sinusoidal positions (context,C) and the KV cache. */
static void gpt2_take_own(dt_decoder_layout *plan, dt_decoder *state)
{
    const dt_model_config *config = plan->config;
    int64_t C = config->decoder.embed, context = config->decoder.context;

    if (config->gpt2.positions == DT_POSITIONS_SINUSOIDAL) {
        dt_tensor *positions = &state->lasting[DT_GPT2_POSITIONS];

        *positions = dt_tensor_2d(NULL, config->dtype, context, C);
        dt_decoder_take(plan, positions);
    }
    dt_decoder_take_kept(plan, state, DT_GPT2_KEPT, 3 * dt_gpt2_attended(config));
    state->norm_mean = dt_decoder_take_stat(plan, 1);
    state->norm_rstd = dt_decoder_take_stat(plan, 1);
}

/* Unless all is kept, GELU's output is computed in the memory of its gradient, and computed there
 * again by backward. */
static void gpt2_take_scratch(dt_decoder_layout *plan, dt_decoder *state, void *block,
                              bool backward)
{
    dt_gpt2_block *a = block;

    state->wide = dt_decoder_take_act(plan, dt_gpt2_wide(plan->config));
    a->gelu = state->wide;
    a->gelu.dim[2] = dt_gpt2_ffn(plan->config);
}

static void take_statistics(dt_decoder_layout *plan, dt_gpt2_block *a)
{
    a->ln_1_mean = dt_decoder_take_stat(plan, 1);
    a->ln_1_rstd = dt_decoder_take_stat(plan, 1);
    a->ln_2_mean = dt_decoder_take_stat(plan, 1);
    a->ln_2_rstd = dt_decoder_take_stat(plan, 1);
}

/* Allocates 2 C and 4 statistics per token; F more if all is kept. */
static void gpt2_take_norms(dt_decoder_layout *plan, void *block, bool backward)
{
    dt_gpt2_block *a = block;

    a->ln_1 = dt_decoder_take_act(plan, plan->config->decoder.embed);
    a->ln_2 = dt_decoder_take_act(plan, plan->config->decoder.embed);
    if (backward && dt_model_keeps_all(plan->config))
        a->gelu = dt_decoder_take_act(plan, dt_gpt2_ffn(plan->config));
    take_statistics(plan, a);
}

static void gpt2_share_norms(dt_decoder_layout *plan, const dt_decoder *state, void *block)
{
    dt_gpt2_block *a = block;

    a->ln_1 = a->ln_2 = state->dnarrow;
    take_statistics(plan, a);
}

/* Allocates 4 A (and C with mid), F and H statistics per token. */
static void gpt2_take_products(dt_decoder_layout *plan, void *block, const dt_tensor *stream)
{
    int64_t C = plan->config->decoder.embed, A = dt_gpt2_attended(plan->config);
    dt_gpt2_block *a = block;

    a->qkv = dt_decoder_take_act(plan, 3 * A);
    a->att = dt_decoder_take_act(plan, A);
    a->lse = dt_decoder_take_lse(plan, dt_decoder_heads(plan->config));
    a->mid = stream ? *stream : dt_decoder_take_act(plan, C);
    a->fc = dt_decoder_take_act(plan, dt_gpt2_ffn(plan->config));
    a->attended = a->qkv;
}

/* A pass that extends one sequence writes q k v directly into the cache; one that extends each
 * copies them there. */
static void gpt2_lay_out_behind(dt_model *model)
{
    const dt_decoder *state = model->state;
    const dt_decoder_growth *growth = &state->growth;
    int64_t first = state->first_position;

    for (int l = 0; !growth->each && l < (int)model->config.decoder.layers; l++) {
        dt_gpt2_block *a = dt_gpt2_block_of(model, l);

        a->qkv = dt_decoder_kept(model, DT_GPT2_KEPT, l, growth->sequence, first, state->T);
        a->attended =
            dt_decoder_kept(model, DT_GPT2_KEPT, l, growth->sequence, 0, first + state->T);
    }
}

extern const dt_model_kind dt_gpt2_kind;

static double embedding_scale(const dt_model *model)
{
    return model->config.gpt2.scale_embedding ? sqrt((double)model->config.decoder.embed) : 1;
}

/* Rows of the position table, from the first position of the pass. */
static dt_tensor positions_of(const dt_model *model)
{
    const dt_decoder *state = model->state;
    int64_t first = state->first_position;
    dt_tensor table = model->config.gpt2.positions == DT_POSITIONS_SINUSOIDAL
                          ? state->lasting[DT_GPT2_POSITIONS]
                          : dt_decoder_weight(model, 0, DT_GPT2_WPE);
    unsigned char *rows = table.data;

    rows += (size_t)(first * table.dim[1]) * dt_dtype_bytes(table.dtype);
    return dt_tensor_2d(rows, table.dtype, table.dim[0] - first, table.dim[1]);
}

/* First row of the sinusoidal positions: in fairseq the padding token is 1, and positions start
 * after it. */
#define FIRST_POSITION 2

static dt_status fill_positions(dt_model *model, dt_error *err)
{
    dt_decoder *state = model->state;

    if (model->config.gpt2.positions != DT_POSITIONS_SINUSOIDAL)
        return DT_OK;
    return dt_sinusoids_fill(model->device, &state->lasting[DT_GPT2_POSITIONS], FIRST_POSITION,
                             err);
}

/* Looks up a position per token where positions do not simply count up: they restart with each
 * document, and in incremental decoding each sequence has its own. */
static dt_status embed_forward(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                               dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    dt_decoder *state = model->state;
    dt_tensor wte = dt_decoder_weight(model, 0, DT_GPT2_WTE), wpe = positions_of(model);
    const dt_tensor none = {0};
    dt_status st = DT_OK;

    if (state->positions.data == NULL)
        return dt_decoder_embed(model, y, tokens, &wte, &wpe, embedding_scale(model), err);
    DT_TRY(dt_decoder_embed(model, y, tokens, &wte, &none, embedding_scale(model), err));
    DT_TRY(ops->embedding_forward(model->device, &state->narrow, &state->positions, &wpe, &none, 1,
                                  NULL, err));
    DT_TRY(ops->residual_forward(model->device, y, y, &state->narrow, err));
out:
    return st;
}

static dt_status embed_backward(dt_model *model, const dt_tensor *dy, const dt_tensor *tokens,
                                dt_error *err)
{
    dt_tensor dwte = dt_decoder_grad(model, 0, DT_GPT2_WTE);
    dt_tensor dwpe = dt_decoder_grad(model, 0, DT_GPT2_WPE), none = {0};
    const dt_ops *ops = model->device->ops;
    const dt_decoder *state = model->state;
    bool apart = state->positions.data != NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_layer_embed_backward(model, &dwte, apart ? &none : &dwpe, dy, tokens,
                                   embedding_scale(model), model->config.decoder.vocab, err));
    if (apart && dwpe.data != NULL)
        DT_TRY(ops->embedding_backward(model->device, &dwpe, &none, dy, &state->positions, 1, NULL,
                                       err));
out:
    return st;
}

static dt_status norm_forward(dt_model *model, const dt_tensor *x, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_tensor w = dt_decoder_weight(model, 0, DT_GPT2_LN_F_W);
    dt_tensor b = dt_decoder_weight(model, 0, DT_GPT2_LN_F_B);

    return model->device->ops->layernorm_forward(model->device, &state->norm, &state->norm_mean,
                                                 &state->norm_rstd, x, &w, &b,
                                                 dt_gpt2_norm_eps(&model->config), err);
}

static dt_status norm_backward(dt_model *model, const dt_tensor *x, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_tensor w = dt_decoder_weight(model, 0, DT_GPT2_LN_F_W);
    dt_tensor dw = dt_decoder_grad(model, 0, DT_GPT2_LN_F_W);
    dt_tensor db = dt_decoder_grad(model, 0, DT_GPT2_LN_F_B);

    return model->device->ops->layernorm_backward(model->device, &state->dstream, &dw, &db,
                                                  &state->dnarrow, x, &state->norm_mean,
                                                  &state->norm_rstd, &w, err);
}

static const dt_decoder_parts parts = {
    .block_params = DT_GPT2_BLOCK_PARAMS,
    .block_bytes = sizeof(dt_gpt2_block),
    .embedding_param = DT_GPT2_WTE,
    .head_param = DT_GPT2_HEAD,
    .kept_first = DT_GPT2_KEPT,
    .kept_end = DT_GPT2_KEPT + 1,
    .lacks = dt_gpt2_lacks,
    .take_own = gpt2_take_own,
    .take_scratch = gpt2_take_scratch,
    .take_norms = gpt2_take_norms,
    .share_norms = gpt2_share_norms,
    .take_products = gpt2_take_products,
    .lay_out_behind = gpt2_lay_out_behind,
    .fill_tables = fill_positions,
    .embed_forward = embed_forward,
    .embed_backward = embed_backward,
    .block_forward = dt_gpt2_block_forward,
    .block_products = dt_gpt2_block_products,
    .block_backward = dt_gpt2_block_backward,
    .norm_forward = norm_forward,
    .norm_backward = norm_backward,
};

const dt_model_kind dt_gpt2_kind = {&dt_decoder_passes, &parts};
