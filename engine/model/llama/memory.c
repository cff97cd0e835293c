#include "engine/model/llama/model_int.h"
#include "engine/model/token_head.h"

#include "base/banned.h"

/* One function says what a pass keeps; run without an arena it counts, with one it hands out. So
 * the size that is reported, the size that is taken and the size that is used cannot differ. */
typedef struct layout {
    const dt_model_config *config;
    dt_device_arena *arena; /* NULL: count only */
    int64_t B, T;
    size_t bytes;
} layout;

static void *take(layout *plan, size_t bytes)
{
    plan->bytes += (bytes + 63) / 64 * 64; /* as the arena does */
    return plan->arena ? dt_device_arena_take(plan->arena, bytes) : NULL;
}

/* (B,T,width) in the model's type */
static dt_tensor take_act(layout *plan, int64_t width)
{
    dt_tensor tensor = dt_tensor_3d(NULL, plan->config->dtype, plan->B, plan->T, width);

    tensor.data = take(plan, dt_tensor_bytes(&tensor));
    return tensor;
}

/* (B*T*each) in fp32 */
static dt_tensor take_stat(layout *plan, int64_t each)
{
    dt_tensor tensor = dt_tensor_1d(NULL, DT_F32, plan->B * plan->T * each);

    tensor.data = take(plan, dt_tensor_bytes(&tensor));
    return tensor;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The norms' outputs and statistics: 2 C and 2 statistics a token. */
static void take_norms(layout *plan, dt_llama_block *block)
{
    block->norm_1 = take_act(plan, plan->config->llama.embed);
    block->norm_2 = take_act(plan, plan->config->llama.embed);
    block->norm_1_rstd = take_stat(plan, 1);
    block->norm_2_rstd = take_stat(plan, 1);
}

/* Of queries and keys, where they are normed: H + G statistics a token. */
static void take_head_stats(layout *plan, dt_llama_block *block)
{
    if (!plan->config->llama.qk_norm)
        return;
    block->q_rstd = take_stat(plan, plan->config->llama.heads);
    block->k_rstd = take_stat(plan, plan->config->llama.kv_heads);
}

/* Where they go then: R a token. */
static void take_turned(layout *plan, dt_llama_block *block)
{
    const dt_llama_config *own = &plan->config->llama;

    if (own->qk_norm)
        block->turned = take_act(plan, dt_llama_q_width(own) + dt_llama_kv_width(own));
}

/* The norms where backward computes them again, each just before it is read: into a gradient's
 * scratch, whose contents are then not needed yet. The forward pass needs that scratch for nothing.
 * The statistics are one set for all blocks. */
static void share_norms(layout *plan, dt_llama_block *block, const dt_llama_state *state)
{
    block->norm_1 = block->norm_2 = state->dnarrow;
    block->norm_1_rstd = take_stat(plan, 1);
    block->norm_2_rstd = take_stat(plan, 1);
}

/* What products and attention have made, but for the block's output: Q + A + 2 F (and C with mid,
 * which is the stream itself where there is no backward) and H statistics a token. */
static void take_products(layout *plan, dt_llama_block *block, const dt_tensor *stream)
{
    const dt_llama_config *own = &plan->config->llama;

    block->qkv = take_act(plan, dt_llama_qkv_width(own));
    block->att = take_act(plan, dt_llama_q_width(own));
    block->lse = dt_tensor_3d(NULL, DT_F32, plan->B, own->heads, plan->T);
    block->lse.data = take(plan, dt_tensor_bytes(&block->lse));
    block->mid = stream ? *stream : take_act(plan, own->embed);
    block->gate_up = take_act(plan, 2 * own->ffn);
}

/* The first F columns of the scratch. */
static dt_tensor act_of(const layout *plan, const dt_llama_state *state)
{
    return dt_tensor_3d(state->wide.data, plan->config->dtype, plan->B, plan->T,
                        plan->config->llama.ffn);
}

/* The table of model_int.h; blocks NULL: count only. `turned`: of all blocks, under selective. */
static void lay_out_blocks(layout *plan, const dt_llama_state *state, const dt_llama_block *turned,
                           dt_llama_block *blocks)
{
    dt_recompute_kind recompute = plan->config->recompute;
    dt_llama_block block = {.act = act_of(plan, state), .turned = turned->turned};

    if (recompute != DT_RECOMPUTE_NONE) {
        share_norms(plan, &block, state);
        take_head_stats(plan, &block);
    }
    if (recompute == DT_RECOMPUTE_FULL) {
        take_turned(plan, &block);
        take_products(plan, &block, NULL);
    }
    for (int64_t l = 0; l < plan->config->llama.layers; l++) {
        if (recompute == DT_RECOMPUTE_NONE) {
            take_norms(plan, &block);
            take_head_stats(plan, &block);
            take_turned(plan, &block);
        }
        if (recompute != DT_RECOMPUTE_FULL)
            take_products(plan, &block, NULL);
        block.out = take_act(plan, plan->config->llama.embed);
        if (blocks)
            blocks[l] = block;
    }
}

/* A pass without backward: the same for all blocks; mid and out are the residual stream itself, and
 * queries and keys are normed and rotated in place. */
static void lay_out_one_block(layout *plan, const dt_llama_state *state, dt_llama_block *blocks)
{
    dt_llama_block block = {.act = act_of(plan, state)};

    take_norms(plan, &block);
    take_head_stats(plan, &block);
    take_products(plan, &block, &state->embedded);
    block.out = state->embedded;
    for (int64_t l = 0; blocks && l < plan->config->llama.layers; l++)
        blocks[l] = block;
}

static void lay_out_logits(layout *plan, dt_llama_state *state, bool backward)
{
    /* without backward logits are fp32 whatever the model's type */
    size_t elem_bytes = backward ? dt_dtype_bytes(plan->config->dtype) : 4;
    size_t row_bytes = (size_t)plan->config->llama.vocab_padded * elem_bytes;
    int64_t room;

    state->logits_rows =
        dt_token_head_chunk(&room, plan->B * plan->T, row_bytes, state->logits_bytes);
    state->logits = take(plan, (size_t)room * row_bytes);
}

/* What follows lies over what has been taken since `bytes`. */
static void go_back(layout *plan, size_t bytes)
{
    plan->bytes = bytes;
    if (plan->arena)
        plan->arena->used_bytes = bytes;
}

/* Scratch of the blocks in place of the logits: these are there between the blocks' forward and
 * backward passes, when nothing is in it. */
static void lay_out_scratch(layout *plan, dt_llama_state *state, dt_llama_block *turned,
                            bool backward)
{
    const dt_llama_config *own = &plan->config->llama;
    size_t start = plan->bytes, logits_end;

    lay_out_logits(plan, state, backward);
    logits_end = plan->bytes;
    go_back(plan, start);
    state->narrow = take_act(plan, own->embed);
    state->wide = take_act(plan, larger(own->ffn, dt_llama_qkv_width(own)));
    if (backward && plan->config->recompute == DT_RECOMPUTE_SELECTIVE)
        take_turned(plan, turned);
    if (plan->bytes < logits_end)
        take(plan, logits_end - plan->bytes);
}

/* First, so that they are at one place in every pass. */
static void lay_out_kept(layout *plan, dt_llama_state *state)
{
    const dt_model_config *config = plan->config;
    const dt_llama_config *own = &config->llama;

    state->angles = dt_tensor_2d(NULL, DT_F32, own->context, own->head_width);
    state->angles.data = take(plan, dt_tensor_bytes(&state->angles));
    if (!config->incremental)
        return;
    state->kept_keys =
        dt_tensor_3d(NULL, config->dtype, own->layers, own->context, dt_llama_kv_width(own));
    state->kept_values = state->kept_keys;
    state->kept_keys.data = take(plan, dt_tensor_bytes(&state->kept_keys));
    state->kept_values.data = take(plan, dt_tensor_bytes(&state->kept_values));
}

/* blocks NULL: count only */
static void lay_out(layout *plan, dt_llama_state *state, dt_llama_block *blocks, bool backward)
{
    const dt_llama_config *own = &plan->config->llama;
    int64_t C = own->embed;
    dt_llama_block turned = {0};

    state->B = plan->B;
    state->T = plan->T;
    state->first_position = 0;
    lay_out_kept(plan, state);
    state->embedded = take_act(plan, C);
    state->norm = take_act(plan, C);
    state->norm_rstd = take_stat(plan, 1);
    state->losses = take_stat(plan, 1);
    lay_out_scratch(plan, state, &turned, backward);
    if (backward) {
        state->dstream = state->norm; /* begins when the head has read that */
        state->dnarrow = take_act(plan, larger(C, dt_llama_q_width(own)));
        state->dnarrow.dim[2] = C;
        lay_out_blocks(plan, state, &turned, blocks);
    } else {
        lay_out_one_block(plan, state, blocks);
    }
}

static size_t count_bytes(const dt_model_config *config, bool backward)
{
    layout plan = {config, NULL, config->batch, config->tokens, 0};
    dt_llama_state state = {.logits_bytes = DT_LOGITS_BYTES};

    lay_out(&plan, &state, NULL, backward);
    return plan.bytes;
}

size_t dt_llama_activation_bytes(const dt_model_config *config)
{
    size_t without = count_bytes(config, false);
    size_t with = config->inference ? 0 : count_bytes(config, true);

    return with > without ? with : without;
}

void dt_llama_lay_out(dt_model *model, int64_t B, int64_t T, bool backward)
{
    dt_llama_state *state = model->state;
    layout plan = {&model->config, &state->arena, B, T, 0};

    state->arena.used_bytes = 0;
    lay_out(&plan, state, state->blocks, backward);
}

/* The first `count` rows of layer l, as (1,count,columns). */
static dt_tensor rows_of(const dt_tensor *kept, int64_t l, int64_t count)
{
    unsigned char *start = kept->data;

    start += (size_t)(l * kept->dim[1] * kept->dim[2]) * dt_dtype_bytes(kept->dtype);
    return dt_tensor_3d(start, kept->dtype, 1, count, kept->dim[2]);
}

void dt_llama_lay_out_behind(dt_model *model)
{
    dt_llama_state *state = model->state;
    int64_t tokens = state->kept_tokens + state->T;

    for (int64_t l = 0; l < model->config.llama.layers; l++) {
        dt_llama_block *block = &state->blocks[l];

        block->qkv.dim[2] = dt_llama_q_width(&model->config.llama);
        block->keys = rows_of(&state->kept_keys, l, tokens);
        block->values = rows_of(&state->kept_values, l, tokens);
    }
    state->first_position = state->kept_tokens;
}
