/* kind: which activations a pass of Llama keeps and where, both its ends, and its parts for
 * engine/model/decoder/. */
#include "engine/model/llama/model_int.h"
#include "engine/model/vocabulary.h"
#include "recipes/architecture/decoder.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- memory: functions of dt_decoder_parts */

static void llama_take_own(dt_decoder_layout *plan, dt_decoder *state)
{
    const dt_model_config *config = plan->config;
    dt_tensor *angles = &state->lasting[DT_LLAMA_ANGLES];
    int64_t tables = dt_llama_angle_tables(config);

    *angles = dt_tensor_2d(NULL, DT_F32, tables * config->decoder.context, dt_llama_turned(config));
    dt_decoder_take(plan, angles);
    for (int i = DT_LLAMA_KEPT_KEYS; i <= DT_LLAMA_KEPT_VALUES; i++)
        dt_decoder_take_kept(plan, state, i, dt_llama_kv_width(config));
    state->lasting[DT_LLAMA_ROW_ANGLES] =
        dt_tensor_2d(NULL, DT_F32, tables * config->sequences, dt_llama_turned(config));
    if (config->sequences > 1)
        dt_decoder_take(plan, &state->lasting[DT_LLAMA_ROW_ANGLES]);
    state->norm_rstd = dt_decoder_take_stat(plan, 1);
    if (config->llama.layer_norm)
        state->norm_mean = dt_decoder_take_stat(plan, 1);
    if (config->llama.qk_norm_whole)
        state->lasting[DT_LLAMA_PRODUCTS] = dt_decoder_take_stat(plan, 1);
}

/* Allocate memory for normed queries and keys: R per token. */
static void take_turned(dt_decoder_layout *plan, dt_llama_block *a)
{
    const dt_model_config *config = plan->config;

    if (config->llama.qk_norm)
        a->turned = dt_decoder_take_act(plan, dt_llama_q_width(config) + dt_llama_kv_width(config));
}

/* act is the first F columns of wide, unless all is kept. Under selective, each block's backward rotates queries and
 * keys again into shared memory. */
static void llama_take_scratch(dt_decoder_layout *plan, dt_decoder *state, void *block,
                               bool backward)
{
    const dt_model_config *config = plan->config;
    dt_llama_block *a = block;

    state->wide =
        dt_decoder_take_act(plan, larger(dt_llama_ffn(config), dt_llama_qkv_width(config)));
    a->act = state->wide;
    a->act.dim[2] = dt_llama_ffn(config);
    if (backward && config->recompute == DT_RECOMPUTE_SELECTIVE)
        take_turned(plan, a);
}

/* Allocate N statistics per token for the norms, and H + G or 2 for normed queries and keys. */
static void take_statistics(dt_decoder_layout *plan, dt_llama_block *a)
{
    const dt_llama_config *own = &plan->config->llama;

    if (dt_llama_norms_before(plan->config)) {
        a->norm_1_rstd = dt_decoder_take_stat(plan, 1);
        a->norm_2_rstd = dt_decoder_take_stat(plan, 1);
    }
    if (own->layer_norm) {
        a->norm_1_mean = dt_decoder_take_stat(plan, 1);
        a->norm_2_mean = dt_decoder_take_stat(plan, 1);
    }
    if (!own->qk_norm)
        return;
    a->q_rstd = dt_decoder_take_stat(plan, own->qk_norm_whole ? 1 : dt_decoder_heads(plan->config));
    a->k_rstd =
        dt_decoder_take_stat(plan, own->qk_norm_whole ? 1 : dt_llama_kv_heads(plan->config));
}

/* Without backward, queries and keys are normed and rotated in place. */
static void llama_take_norms(dt_decoder_layout *plan, void *block, bool backward)
{
    dt_llama_block *a = block;

    if (dt_llama_norms_before(plan->config)) {
        a->norm_1 = dt_decoder_take_act(plan, plan->config->decoder.embed);
        a->norm_2 = dt_decoder_take_act(plan, plan->config->decoder.embed);
    }
    take_statistics(plan, a);
    if (backward)
        take_turned(plan, a);
    if (backward && dt_model_keeps_all(plan->config))
        a->act = dt_decoder_take_act(plan, dt_llama_ffn(plan->config));
}

static void llama_share_norms(dt_decoder_layout *plan, const dt_decoder *state, void *block)
{
    dt_llama_block *a = block;

    a->norm_1 = a->norm_2 = state->dnarrow;
    take_statistics(plan, a);
    if (plan->config->recompute == DT_RECOMPUTE_FULL)
        take_turned(plan, a);
}

/* Allocates Q + A + 2 F (and C with mid, M C with backward) and H + M statistics per token. */
static void llama_take_products(dt_decoder_layout *plan, void *block, const dt_tensor *stream)
{
    const dt_model_config *config = plan->config;
    dt_llama_block *a = block;

    a->qkv = dt_decoder_take_act(plan, dt_llama_qkv_width(config));
    a->att = dt_decoder_take_act(plan, dt_llama_q_width(config));
    a->lse = dt_decoder_take_lse(plan, dt_decoder_heads(config));
    a->mid = stream ? *stream : dt_decoder_take_act(plan, config->decoder.embed);
    a->gate_up = dt_decoder_take_act(plan, 2 * dt_llama_ffn(config));
    if (!dt_llama_norms_after(config))
        return;
    a->after_1_rstd = dt_decoder_take_stat(plan, 1);
    a->after_2_rstd = dt_decoder_take_stat(plan, 1);
    if (stream != NULL)
        return;
    a->out_1 = dt_decoder_take_act(plan, config->decoder.embed);
    a->out_2 = dt_decoder_take_act(plan, config->decoder.embed);
}

/* A pass that extends one sequence writes keys and values directly into the cache; one that extends
 * each copies them there. */
static void llama_lay_out_behind(dt_model *model)
{
    const dt_decoder *state = model->state;
    const dt_decoder_growth *growth = &state->growth;
    int64_t tokens = state->first_position + state->T;

    for (int l = 0; !growth->each && l < (int)model->config.decoder.layers; l++) {
        dt_llama_block *a = dt_llama_block_of(model, l);

        a->qkv.dim[2] = dt_llama_q_width(&model->config);
        a->keys = dt_decoder_kept(model, DT_LLAMA_KEPT_KEYS, l, growth->sequence, 0, tokens);
        a->values = dt_decoder_kept(model, DT_LLAMA_KEPT_VALUES, l, growth->sequence, 0, tokens);
    }
}

extern const dt_model_kind dt_llama_kind;

static dt_status embed_forward(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                               dt_error *err)
{
    dt_tensor weight = dt_decoder_weight(model, 0, DT_LLAMA_EMBED), no_positions = {0};
    dt_status st = DT_OK;

    DT_TRY(dt_llama_angles_ready(model, err));
    DT_TRY(dt_decoder_embed(model, y, tokens, &weight, &no_positions,
                            dt_llama_embedding_factor(&model->config), err));
out:
    return st;
}

static dt_status embed_backward(dt_model *model, const dt_tensor *dy, const dt_tensor *tokens,
                                dt_error *err)
{
    dt_tensor dweight = dt_decoder_grad(model, 0, DT_LLAMA_EMBED), no_positions = {0};

    return dt_layer_embed_backward(model, &dweight, &no_positions, dy, tokens,
                                   dt_llama_embedding_factor(&model->config),
                                   model->config.decoder.vocab, err);
}

static dt_status norm_forward(dt_model *model, const dt_tensor *x, dt_error *err)
{
    dt_decoder *state = model->state;
    const dt_tensor w[] = {dt_decoder_weight(model, 0, DT_LLAMA_NORM),
                           dt_decoder_weight(model, 0, DT_LLAMA_NORM_B)};

    return dt_llama_norm_forward(model, &state->norm, &state->norm_mean, &state->norm_rstd, x, w,
                                 err);
}

static dt_status norm_backward(dt_model *model, const dt_tensor *x, dt_error *err)
{
    dt_decoder *state = model->state;
    const dt_tensor w = dt_decoder_weight(model, 0, DT_LLAMA_NORM);
    dt_tensor dw[] = {dt_decoder_grad(model, 0, DT_LLAMA_NORM),
                      dt_decoder_grad(model, 0, DT_LLAMA_NORM_B)};

    return dt_llama_norm_backward(model, &state->dstream, dw, &state->dnarrow, x, &state->norm_mean,
                                  &state->norm_rstd, &w, err);
}

static double logits_cap(const dt_model_config *config)
{
    return config->llama.logits_softcap;
}

static const dt_decoder_parts parts = {
    .block_params = DT_LLAMA_BLOCK_PARAMS,
    .block_bytes = sizeof(dt_llama_block),
    .embedding_param = DT_LLAMA_EMBED,
    .head_param = DT_LLAMA_HEAD,
    .kept_first = DT_LLAMA_KEPT_KEYS,
    .kept_end = DT_LLAMA_KEPT_VALUES + 1,
    .lacks = dt_llama_lacks,
    .take_own = llama_take_own,
    .take_scratch = llama_take_scratch,
    .take_norms = llama_take_norms,
    .share_norms = llama_share_norms,
    .take_products = llama_take_products,
    .gradient_columns = dt_llama_q_width,
    .lay_out_behind = llama_lay_out_behind,
    .fill_tables = dt_llama_angles_fill,
    .logits_factor = dt_llama_logits_factor,
    .logits_cap = logits_cap,
    .embed_forward = embed_forward,
    .embed_backward = embed_backward,
    .block_forward = dt_llama_block_forward,
    .block_products = dt_llama_block_products,
    .block_backward = dt_llama_block_backward,
    .norm_forward = norm_forward,
    .norm_backward = norm_backward,
};

const dt_model_kind dt_llama_kind = {&dt_decoder_passes, &parts};
