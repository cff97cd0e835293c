#include "engine/model/gpt2/model_int.h"
#include "engine/model/token_head.h"

#include "base/banned.h"

#define CHUNK_MULTIPLE 128 /* rows of a tile of the products */

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

/* (B*T) in fp32 */
static dt_tensor take_stat(layout *plan)
{
    dt_tensor tensor = dt_tensor_1d(NULL, DT_F32, plan->B * plan->T);

    tensor.data = take(plan, dt_tensor_bytes(&tensor));
    return tensor;
}

/* The norms' outputs and statistics: 2 C and 4 statistics a token. */
static void take_norms(layout *plan, dt_gpt2_block *block)
{
    block->ln_1 = take_act(plan, plan->config->gpt2.embed);
    block->ln_2 = take_act(plan, plan->config->gpt2.embed);
    block->ln_1_mean = take_stat(plan);
    block->ln_1_rstd = take_stat(plan);
    block->ln_2_mean = take_stat(plan);
    block->ln_2_rstd = take_stat(plan);
}

/* The same where backward computes them again, each just before it is read: into a gradient's
 * scratch, whose contents are then not needed yet. The forward pass needs that scratch for nothing.
 * The statistics are one set for all blocks. */
static void share_norms(layout *plan, dt_gpt2_block *block, const dt_gpt2_state *state)
{
    block->ln_1 = block->ln_2 = state->dnarrow;
    block->ln_1_mean = take_stat(plan);
    block->ln_1_rstd = take_stat(plan);
    block->ln_2_mean = take_stat(plan);
    block->ln_2_rstd = take_stat(plan);
}

/* What products and attention have made, but for the block's output: 8 C (9 C with mid, which is
 * the stream itself where there is no backward) and H statistics a token. */
static void take_products(layout *plan, dt_gpt2_block *block, const dt_tensor *stream)
{
    int64_t C = plan->config->gpt2.embed;

    block->qkv = take_act(plan, 3 * C);
    block->att = take_act(plan, C);
    block->lse = dt_tensor_3d(NULL, DT_F32, plan->B, plan->config->gpt2.heads, plan->T);
    block->lse.data = take(plan, dt_tensor_bytes(&block->lse));
    block->mid = stream ? *stream : take_act(plan, C);
    block->fc = take_act(plan, 4 * C);
    block->attended = block->qkv;
}

/* A pass with backward keeps, per token and block:
 *   none       12 C and 4 + H statistics
 *   selective  10 C and H; beside the blocks 4 statistics
 *   full       C, the output; beside the blocks 9 C and 4 + H statistics, of one block at a time
 * GELU's output is in none of them: it is made where its gradient will be, and made again there. */
static void lay_out_blocks(layout *plan, const dt_gpt2_state *state, dt_gpt2_block *blocks)
{
    dt_recompute_kind recompute = plan->config->recompute;
    dt_gpt2_block block = {.gelu = state->wide};

    if (recompute != DT_RECOMPUTE_NONE)
        share_norms(plan, &block, state);
    if (recompute == DT_RECOMPUTE_FULL)
        take_products(plan, &block, NULL);
    for (int64_t l = 0; l < plan->config->gpt2.layers; l++) {
        if (recompute == DT_RECOMPUTE_NONE)
            take_norms(plan, &block);
        if (recompute != DT_RECOMPUTE_FULL)
            take_products(plan, &block, NULL);
        block.out = take_act(plan, plan->config->gpt2.embed);
        if (blocks)
            blocks[l] = block;
    }
}

/* A pass without: 10 C and 4 + H statistics a token, the same for all blocks; mid and out are the
 * residual stream itself. */
static void lay_out_one_block(layout *plan, const dt_gpt2_state *state, dt_gpt2_block *blocks)
{
    dt_gpt2_block block = {.gelu = state->wide};

    take_norms(plan, &block);
    take_products(plan, &block, &state->embedded);
    block.out = state->embedded;
    for (int64_t l = 0; blocks && l < plan->config->gpt2.layers; l++)
        blocks[l] = block;
}

/* How large a chunk of logits may be: where chunks are wide, what lies there anyway may be filled. */
static int64_t most_bytes(const layout *plan, const dt_gpt2_state *state)
{
    int64_t scratch = 5 * plan->B * plan->T * plan->config->gpt2.embed *
                      (int64_t)dt_dtype_bytes(plan->config->dtype);

    return state->wide_chunks && scratch > state->logits_bytes ? scratch : state->logits_bytes;
}

static void lay_out_logits(layout *plan, dt_gpt2_state *state, bool backward)
{
    /* without backward logits are fp32 whatever the model's type */
    size_t elem_bytes = backward ? dt_dtype_bytes(plan->config->dtype) : 4;
    size_t row_bytes = (size_t)plan->config->gpt2.vocab_padded * elem_bytes;
    int64_t rows = plan->B * plan->T, room, round;

    state->logits_rows = dt_token_head_chunk(&room, rows, row_bytes, most_bytes(plan, state));
    round = (state->logits_rows + CHUNK_MULTIPLE - 1) / CHUNK_MULTIPLE * CHUNK_MULTIPLE;
    if (state->wide_chunks && state->logits_rows < rows && round <= room)
        state->logits_rows = round;
    state->logits = take(plan, (size_t)room * row_bytes);
}

/* What follows lies over what has been taken since `bytes`. */
static void go_back(layout *plan, size_t bytes)
{
    plan->bytes = bytes;
    if (plan->arena)
        plan->arena->used_bytes = bytes;
}

/* Scratch of the blocks, 5 C a token, in place of the logits: these are there between the blocks'
 * forward and backward passes, when nothing is in it. */
static void lay_out_scratch(layout *plan, dt_gpt2_state *state, bool backward)
{
    int64_t C = plan->config->gpt2.embed;
    size_t start = plan->bytes, logits_end;

    lay_out_logits(plan, state, backward);
    logits_end = plan->bytes;
    go_back(plan, start);
    state->narrow = take_act(plan, C);
    state->wide = take_act(plan, 4 * C);
    if (plan->bytes < logits_end)
        take(plan, logits_end - plan->bytes);
}

/* blocks NULL: count only */
static void lay_out(layout *plan, dt_gpt2_state *state, dt_gpt2_block *blocks, bool backward)
{
    const dt_model_config *config = plan->config;
    int64_t C = config->gpt2.embed;

    state->B = plan->B;
    state->T = plan->T;
    state->first_position = 0;
    if (config->gpt2.positions == DT_POSITIONS_SINUSOIDAL) { /* first: at one place in every pass */
        state->positions = dt_tensor_2d(NULL, config->dtype, config->gpt2.context, C);
        state->positions.data = take(plan, dt_tensor_bytes(&state->positions));
    }
    if (config->incremental) {
        state->kept =
            dt_tensor_3d(NULL, config->dtype, config->gpt2.layers, config->gpt2.context, 3 * C);
        state->kept.data = take(plan, dt_tensor_bytes(&state->kept));
    }
    state->embedded = take_act(plan, C);
    state->ln_f = take_act(plan, C);
    state->ln_f_mean = take_stat(plan);
    state->ln_f_rstd = take_stat(plan);
    state->losses = take_stat(plan);
    lay_out_scratch(plan, state, backward);
    if (backward) {
        state->dstream = state->ln_f; /* begins when the head has read that */
        state->dnarrow = take_act(plan, C);
        lay_out_blocks(plan, state, blocks);
    } else {
        lay_out_one_block(plan, state, blocks);
    }
}

static size_t count_bytes(const dt_model_config *config, bool backward)
{
    layout plan = {config, NULL, config->batch, config->tokens, 0};
    dt_gpt2_state state = {.logits_bytes = DT_LOGITS_BYTES};

    lay_out(&plan, &state, NULL, backward);
    return plan.bytes;
}

size_t dt_gpt2_activation_bytes(const dt_model_config *config)
{
    size_t without = count_bytes(config, false);
    size_t with = config->inference ? 0 : count_bytes(config, true);

    return with > without ? with : without;
}

void dt_gpt2_lay_out(dt_model *model, int64_t B, int64_t T, bool backward)
{
    dt_gpt2_state *state = model->state;
    layout plan = {&model->config, &state->arena, B, T, 0};

    state->arena.used_bytes = 0;
    lay_out(&plan, state, state->blocks, backward);
}

void dt_gpt2_lay_out_behind(dt_model *model)
{
    dt_gpt2_state *state = model->state;
    const dt_tensor *kept = &state->kept;
    int64_t width = kept->dim[2], first = state->kept_tokens;
    size_t row_bytes = (size_t)width * dt_dtype_bytes(kept->dtype);

    for (int64_t l = 0; l < model->config.gpt2.layers; l++) {
        dt_gpt2_block *block = &state->blocks[l];
        unsigned char *start = kept->data;

        start += (size_t)(l * kept->dim[1]) * row_bytes;
        block->qkv =
            dt_tensor_3d(start + (size_t)first * row_bytes, kept->dtype, 1, state->T, width);
        block->attended = dt_tensor_3d(start, kept->dtype, 1, first + state->T, width);
    }
    state->first_position = first;
}
