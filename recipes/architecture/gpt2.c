#include "recipes/architecture/kinds.h"

#include "recipes/architecture/decoder.h"
#include "recipes/architecture/published.h"

extern const dt_architecture dt_architecture_gpt2;
extern const dt_published dt_published_gpt2[];

/* --- config */

static void configure(dt_model_config *out, const dt_recipe *recipe, int64_t vocab)
{
    out->decoder = dt_decoder_configure(recipe, vocab);
    out->gpt2 = (dt_gpt2_config){
        .activation = recipe->model.activation,
        .positions = recipe->model.positions,
        .scale_embedding = recipe->model.scale_embedding,
        .ffn = recipe->model.ffn,
        .norm_eps = recipe->model.norm_eps,
    };
}

static dt_status check(const dt_model_config *config, dt_error *err)
{
    const dt_decoder_config *decoder = &config->decoder;
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_check(config, err));
    if (decoder->embed % decoder->heads != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: 'heads' (%lld) does not divide 'embed' (%lld); choose a divisor",
                 (long long)decoder->heads, (long long)decoder->embed);
    if (config->gpt2.positions == DT_POSITIONS_SINUSOIDAL && decoder->embed < 4)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: sinusoidal positions need an 'embed' of 4 or more, not %lld",
                 (long long)decoder->embed);
out:
    return st;
}

/* --- parameters */

enum { NONE = DT_SIZE_NONE, C1 = DT_SIZE_EMBED, VOCAB = DT_SIZE_VOCAB, CONTEXT = DT_SIZE_CONTEXT };
enum { C3 = DT_SIZE_OWN, FFN };

static const dt_param_row root_shapes[DT_GPT2_ROOT_PARAMS] = {
    [DT_GPT2_WTE] = {"wte.weight", VOCAB, C1, DT_INIT_NORMAL, false, false, DT_CUT_ROWS},
    [DT_GPT2_WPE] = {"wpe.weight", CONTEXT, C1, DT_INIT_NORMAL, false, false, DT_CUT_NONE},
    [DT_GPT2_LN_F_W] = {"ln_f.weight", C1, NONE, DT_INIT_ONE, false, false, DT_CUT_NONE},
    [DT_GPT2_LN_F_B] = {"ln_f.bias", C1, NONE, DT_INIT_ZERO, false, false, DT_CUT_NONE},
    [DT_GPT2_HEAD] = {"lm_head.weight", VOCAB, C1, DT_INIT_NORMAL, false, false, DT_CUT_ROWS},
};

static const dt_param_row block_shapes[DT_GPT2_BLOCK_PARAMS] = {
    [DT_GPT2_LN_1_W] = {"ln_1.weight", C1, NONE, DT_INIT_ONE, false, false, DT_CUT_NONE},
    [DT_GPT2_LN_1_B] = {"ln_1.bias", C1, NONE, DT_INIT_ZERO, false, false, DT_CUT_NONE},
    [DT_GPT2_ATTN_W] = {"attn.c_attn.weight", C3, C1, DT_INIT_NORMAL, false, false, DT_CUT_THIRDS},
    [DT_GPT2_ATTN_B] = {"attn.c_attn.bias", C3, NONE, DT_INIT_ZERO, false, false, DT_CUT_THIRDS},
    [DT_GPT2_ATTN_PROJ_W] = {"attn.c_proj.weight", C1, C1, DT_INIT_NORMAL, false, true,
                             DT_CUT_COLUMNS},
    [DT_GPT2_ATTN_PROJ_B] = {"attn.c_proj.bias", C1, NONE, DT_INIT_ZERO, false, false, DT_CUT_NONE},
    [DT_GPT2_LN_2_W] = {"ln_2.weight", C1, NONE, DT_INIT_ONE, false, false, DT_CUT_NONE},
    [DT_GPT2_LN_2_B] = {"ln_2.bias", C1, NONE, DT_INIT_ZERO, false, false, DT_CUT_NONE},
    [DT_GPT2_FC_W] = {"mlp.c_fc.weight", FFN, C1, DT_INIT_NORMAL, false, false, DT_CUT_ROWS},
    [DT_GPT2_FC_B] = {"mlp.c_fc.bias", FFN, NONE, DT_INIT_ZERO, false, false, DT_CUT_ROWS},
    [DT_GPT2_MLP_PROJ_W] = {"mlp.c_proj.weight", C1, FFN, DT_INIT_NORMAL, false, true,
                            DT_CUT_COLUMNS},
    [DT_GPT2_MLP_PROJ_B] = {"mlp.c_proj.bias", C1, NONE, DT_INIT_ZERO, false, false, DT_CUT_NONE},
};

static int64_t whole_ffn(const dt_model_config *config)
{
    return config->gpt2.ffn > 0 ? config->gpt2.ffn : 4 * config->decoder.embed;
}

int64_t dt_gpt2_ffn(const dt_model_config *config)
{
    return dt_decoder_share(config, whole_ffn(config));
}

int64_t dt_gpt2_attended(const dt_model_config *config)
{
    return dt_decoder_share(config, config->decoder.embed);
}

double dt_gpt2_norm_eps(const dt_model_config *config)
{
    return config->gpt2.norm_eps > 0 ? config->gpt2.norm_eps : 1e-5;
}

static int64_t size_elems(const dt_model_config *config, int size)
{
    return size == C3 ? 3 * config->decoder.embed : whole_ffn(config);
}

int64_t dt_gpt2_wide(const dt_model_config *config)
{
    int64_t qkv = 3 * dt_gpt2_attended(config);

    return dt_gpt2_ffn(config) > qkv ? dt_gpt2_ffn(config) : qkv;
}

bool dt_gpt2_lacks(const dt_model_config *config, int unit, int param)
{
    return unit == 0 &&
           ((param == DT_GPT2_WPE && config->gpt2.positions == DT_POSITIONS_SINUSOIDAL) ||
            (param == DT_GPT2_HEAD && !config->decoder.own_lm_head));
}

static const dt_param_rows rows = {
    .root = root_shapes,
    .root_count = DT_GPT2_ROOT_PARAMS,
    .block = block_shapes,
    .block_count = DT_GPT2_BLOCK_PARAMS,
    .block_prefix = "h.",
    .init_std = 0.02,
    .size = size_elems,
    .lacks = dt_gpt2_lacks,
};

static void params(dt_param_sink *sink, const dt_model_config *config, int unit)
{
    dt_decoder_params(sink, config, unit, &rows);
}

/* --- FLOPs of a token */

/* Total 6 N + 12 L C T (Chowdhery et al. 2022, appendix B). N counts the matrices that a token is
 * multiplied with: per block c_attn 3 C^2, c_proj C^2, c_fc C F, c_proj C F; the head once, without its padding,
 * tied or not; not what is only looked up: positions, and the token embedding of an untied model. The second term is
 * attention's two products, counted without the causal mask as is usual. Backward is twice forward.
 * Recomputed under full: all of a block except its last product, 2 C F of 8 C^2 + 4 C F FLOPs. */
static dt_unit_flops flops(const dt_model_config *config, int unit)
{
    double C = (double)config->decoder.embed, T = (double)config->tokens;
    double F = (double)whole_ffn(config);

    if (unit == 0)
        return dt_decoder_lora_flops(
            config, unit, dt_decoder_flops(config, 2 * (double)config->decoder.vocab * C, 0), 0);
    return dt_decoder_lora_flops(config, unit,
                                 dt_decoder_flops(config, 8 * C * C + 4 * C * F + 4 * T * C,
                                                  8 * C * C + 2 * C * F + 4 * T * C),
                                 4 * T * C);
}

/* --- activations */

/* The table of engine/model/gpt2/model_int.h, which explains each line. Outside the blocks are
 * the embedding, the final norm, a gradient, and the statistics of the final norm and the loss;
 * under full also one block; without backward only this block. */
static dt_row_cost row_cost(const dt_model_config *config, bool backward)
{
    int64_t L = config->decoder.layers, C = config->decoder.embed, H = dt_decoder_heads(config);
    int64_t A = dt_gpt2_attended(config), F = dt_gpt2_ffn(config);
    int64_t scratch = C + dt_gpt2_wide(config);

    if (!backward)
        return (dt_row_cost){4 * C + 4 * A + F, H + 7, scratch, false};
    switch (config->recompute) {
    case DT_RECOMPUTE_SELECTIVE:
        return (dt_row_cost){L * (2 * C + 4 * A + F) + 3 * C, L * H + 7, scratch, false};
    case DT_RECOMPUTE_FULL:
        return (dt_row_cost){(L + 4) * C + 4 * A + F, H + 7, scratch, false};
    case DT_RECOMPUTE_NONE:
    case DT_RECOMPUTE_NOTHING:
        break;
    }
    return (dt_row_cost){L * (4 * C + 4 * A + F + (dt_model_keeps_all(config) ? F : 0)) + 3 * C,
                         L * (4 + H) + 3, scratch, false};
}

/* Adds sinusoidal positions, T C. */
static int64_t activation_bytes(const dt_model_config *config)
{
    int64_t width = config->decoder.embed * (int64_t)dt_dtype_bytes(config->dtype);
    int64_t positions = config->gpt2.positions == DT_POSITIONS_SINUSOIDAL
                            ? dt_size_times(config->decoder.context, width)
                            : 0;

    return dt_size_plus(dt_decoder_activation_bytes(config, row_cost), positions);
}

static const char *const reads[] = {
    "lora.rank",
    "dpo.beta",
    "lora.from",
    "lora.alpha",
    "lora.targets",
    "lora.dropout",
    "lora.rslora",
    "model.preset",
    "model.heads",
    "model.vocab",
    "model.dropout",
    "model.ffn",
    "model.norm_eps",
    "model.activation",
    "model.positions",
    "model.tied",
    "model.attention_dropout",
    "batch.tokens",
    "data.tokens",
    "data.cross_documents",
    "data.format",
    "data.chat_template",
    "data.loss",
    "data.too_long",
    "data.pack",
    "data.end_of_text",
    "model.end_ids",
    "model.scale_embedding",
    NULL,
};

static const dt_lora_target targets[] = {
    {"qkv", "c_attn", "attn.c_attn.weight"},
    {"o", "attn.c_proj", "attn.c_proj.weight"},
    {"up", "c_fc", "mlp.c_fc.weight"},
    {"down", "mlp.c_proj", "mlp.c_proj.weight"},
    {0},
};

static const dt_divided_size divided[] = {
    {"model.heads", dt_decoder_whole_heads, false, 1},
    {"model.ffn", whole_ffn, false, 1},
    {"model.vocab", dt_decoder_whole_vocab, false, DT_VOCAB_MULTIPLE},
    {0},
};

const dt_architecture dt_architecture_gpt2 = {
    .name = "gpt2",
    .item = "token",
    .ffn_follows = true,
    .reads = reads,
    .configure = configure,
    .check = check,
    .inputs = dt_decoder_inputs,
    .units = dt_decoder_units,
    .params = params,
    .flops = flops,
    .flops_formula = "6 N + 12 L C T",
    .activation_bytes = activation_bytes,
    .divided = divided,
    .sums = dt_decoder_sums,
    .published = dt_published_gpt2,
    .targets = targets,
    .rows = &rows,
};
