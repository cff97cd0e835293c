#include "engine/model/gpt2/model_int.h"

#include "base/banned.h"

/* Sinusoidal positions (context,C), and a growing sequence's q k v (layers,context,3C). */
void dt_gpt2_take_own(dt_decoder_layout *plan, dt_decoder *state)
{
    const dt_model_config *config = plan->config;
    int64_t C = config->decoder.embed, context = config->decoder.context;

    if (config->gpt2.positions == DT_POSITIONS_SINUSOIDAL) {
        dt_tensor *positions = &state->lasting[DT_GPT2_POSITIONS];

        *positions = dt_tensor_2d(NULL, config->dtype, context, C);
        dt_decoder_take(plan, positions);
    }
    if (config->incremental) {
        dt_tensor *kept = &state->lasting[DT_GPT2_KEPT];

        *kept = dt_tensor_3d(NULL, config->dtype, config->decoder.layers, context, 3 * C);
        dt_decoder_take(plan, kept);
    }
    state->norm_mean = dt_decoder_take_stat(plan, 1);
    state->norm_rstd = dt_decoder_take_stat(plan, 1);
}

/* GELU's output is never kept: it is made where its gradient will be, and made again there. */
void dt_gpt2_take_scratch(dt_decoder_layout *plan, dt_decoder *state, void *block, bool backward)
{
    dt_gpt2_block *a = block;

    state->wide = dt_decoder_take_act(plan, 4 * plan->config->decoder.embed);
    a->gelu = state->wide;
}

static void take_statistics(dt_decoder_layout *plan, dt_gpt2_block *a)
{
    a->ln_1_mean = dt_decoder_take_stat(plan, 1);
    a->ln_1_rstd = dt_decoder_take_stat(plan, 1);
    a->ln_2_mean = dt_decoder_take_stat(plan, 1);
    a->ln_2_rstd = dt_decoder_take_stat(plan, 1);
}

/* 2 C and 4 statistics a token. */
void dt_gpt2_take_norms(dt_decoder_layout *plan, void *block, bool backward)
{
    dt_gpt2_block *a = block;

    a->ln_1 = dt_decoder_take_act(plan, plan->config->decoder.embed);
    a->ln_2 = dt_decoder_take_act(plan, plan->config->decoder.embed);
    take_statistics(plan, a);
}

void dt_gpt2_share_norms(dt_decoder_layout *plan, const dt_decoder *state, void *block)
{
    dt_gpt2_block *a = block;

    a->ln_1 = a->ln_2 = state->dnarrow;
    take_statistics(plan, a);
}

/* 8 C (9 C with mid) and H statistics a token. */
void dt_gpt2_take_products(dt_decoder_layout *plan, void *block, const dt_tensor *stream)
{
    int64_t C = plan->config->decoder.embed;
    dt_gpt2_block *a = block;

    a->qkv = dt_decoder_take_act(plan, 3 * C);
    a->att = dt_decoder_take_act(plan, C);
    a->lse = dt_decoder_take_lse(plan, plan->config->decoder.heads);
    a->mid = stream ? *stream : dt_decoder_take_act(plan, C);
    a->fc = dt_decoder_take_act(plan, 4 * C);
    a->attended = a->qkv;
}

void dt_gpt2_lay_out_behind(dt_model *model)
{
    dt_decoder *state = model->state;
    dt_gpt2_block *blocks = state->blocks;
    const dt_tensor *kept = &state->lasting[DT_GPT2_KEPT];
    int64_t width = kept->dim[2], first = state->kept_tokens;
    size_t row_bytes = (size_t)width * dt_dtype_bytes(kept->dtype);

    for (int64_t l = 0; l < model->config.decoder.layers; l++) {
        unsigned char *start = kept->data;

        start += (size_t)(l * kept->dim[1]) * row_bytes;
        blocks[l].qkv =
            dt_tensor_3d(start + (size_t)first * row_bytes, kept->dtype, 1, state->T, width);
        blocks[l].attended = dt_tensor_3d(start, kept->dtype, 1, first + state->T, width);
    }
}
