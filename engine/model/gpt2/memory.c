#include "engine/model/gpt2/model_int.h"
#include "recipes/architecture/decoder.h"

/* Allocates the sinusoidal positions (context,C) and the KV cache. */
void dt_gpt2_take_own(dt_decoder_layout *plan, dt_decoder *state)
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

/* GELU's output is never kept: it is computed in the memory of its gradient, and computed there
 * again by backward. */
void dt_gpt2_take_scratch(dt_decoder_layout *plan, dt_decoder *state, void *block, bool backward)
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

/* Allocates 2 C and 4 statistics per token. */
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

/* Allocates 4 A (and C with mid), F and H statistics per token. */
void dt_gpt2_take_products(dt_decoder_layout *plan, void *block, const dt_tensor *stream)
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
void dt_gpt2_lay_out_behind(dt_model *model)
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
