#include "recipes/architecture/kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/architecture/decoder.h"
#include "recipes/architecture/published.h"

extern const dt_architecture dt_architecture_llama;
extern const dt_published dt_published_llama[];

/* --- config */

static void configure(dt_model_config *out, const dt_recipe *recipe, int64_t vocab)
{
    int64_t heads = recipe->model.heads, width = recipe->model.head_width;

    out->decoder = dt_decoder_configure(recipe, vocab);
    out->llama = (dt_llama_config){
        .kv_heads = recipe->model.kv_heads > 0 ? recipe->model.kv_heads : heads,
        .head_width = width > 0 || heads == 0 ? width : recipe->model.embed / heads,
        .ffn = recipe->model.ffn,
        .norm_eps = recipe->model.norm_eps,
        .scale_embedding = recipe->model.scale_embedding,
#define TAKE(type, name) .name = recipe->model.name,
        DT_SWITCHES(TAKE)
#undef TAKE
    };
}

/* --- switches of each block, and factors */

/* Returns the letter of a block in the repeated pattern; `letter` if the pattern is empty. */
static char letter_of(const char *pattern, int64_t layer, char letter)
{
    return pattern == NULL || pattern[0] == '\0' ? letter
                                                 : pattern[(size_t)layer % strlen(pattern)];
}

int64_t dt_llama_window(const dt_model_config *config, int64_t layer)
{
    return letter_of(config->llama.window_layers, layer, 'w') == 'w' ? config->llama.window : 0;
}

dt_llama_angles dt_llama_angles_of(const dt_model_config *config, int64_t layer)
{
    if (letter_of(config->llama.rope_layers, layer, 'r') == 'n')
        return DT_LLAMA_ANGLES_NONE;
    return config->llama.rope_local_theta > 0 && dt_llama_window(config, layer) > 0
               ? DT_LLAMA_ANGLES_LOCAL
               : DT_LLAMA_ANGLES_ALL;
}

int64_t dt_llama_angle_tables(const dt_model_config *config)
{
    int64_t most = 0;

    for (int64_t l = 0; l < config->decoder.layers; l++)
        if ((int64_t)dt_llama_angles_of(config, l) > most)
            most = (int64_t)dt_llama_angles_of(config, l);
    return most + 1;
}

int64_t dt_llama_turned(const dt_model_config *config)
{
    double share = config->llama.rotary_share;

    return share > 0 && share < 1 ? (int64_t)((double)config->llama.head_width * share)
                                  : config->llama.head_width;
}

bool dt_llama_norms_before(const dt_model_config *config)
{
    return config->llama.block_norms != DT_BLOCK_NORMS_AFTER;
}

bool dt_llama_norms_after(const dt_model_config *config)
{
    return config->llama.block_norms != DT_BLOCK_NORMS_BEFORE;
}

static double or_one(double factor)
{
    return factor > 0 ? factor : 1;
}

double dt_llama_embedding_factor(const dt_model_config *config)
{
    return or_one(config->llama.embedding_multiplier) *
           (config->llama.scale_embedding ? sqrt((double)config->decoder.embed) : 1);
}

double dt_llama_residual_factor(const dt_model_config *config)
{
    return or_one(config->llama.residual_multiplier);
}

double dt_llama_score_factor(const dt_model_config *config)
{
    if (config->llama.attention_multiplier > 0 || config->llama.query_scalar == 0)
        return config->llama.attention_multiplier;
    return 1 / sqrt((double)config->llama.query_scalar);
}

double dt_llama_logits_factor(const dt_model_config *config)
{
    return 1 / or_one(config->llama.logits_divisor);
}

/* --- checks */

static dt_status check_letters(const char *what, const char *pattern, const char *letters,
                               dt_error *err)
{
    if (pattern != NULL && pattern[strspn(pattern, letters)] != '\0')
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model: '%s' is '%.40s'; expected a letter for each block, '%c' or '%c'",
                       what, pattern, letters[0], letters[1]);
    return DT_OK;
}

/* A list of factors, one for each pair of elements that is rotated. */
static dt_status check_factors(const char *what, const dt_string_list *factors, int64_t count,
                               dt_error *err)
{
    if (factors->count != count)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model: '%s' has %lld numbers; expected %lld, one for each pair of rotated "
                       "elements",
                       what, (long long)factors->count, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        char *end;
        double factor = strtod(factors->items[i], &end);

        if (*end != '\0' || !(factor > 0) || !isfinite(factor))
            return DT_FAIL(err, DT_ERR_RECIPE, "model: '%s' has '%.40s'; expected a number above 0",
                           what, factors->items[i]);
    }
    return DT_OK;
}

static dt_status check_scaling(const dt_model_config *config, dt_error *err)
{
    const dt_llama_config *own = &config->llama;
    dt_status st = DT_OK;

    if (own->rope_scaling >= DT_ROPE_LLAMA3 && own->rope_original_tokens < 1)
        DT_THROW(err, DT_ERR_RECIPE, "model: 'rope_original_tokens' is %lld; expected 1 or more",
                 (long long)own->rope_original_tokens);
    if (own->rope_scaling == DT_ROPE_DYNAMIC && dt_llama_turned(config) < 4)
        DT_THROW(err, DT_ERR_RECIPE, "model: dynamic scaling needs at least 4 rotated elements");
    if (own->rope_scaling == DT_ROPE_LONGROPE) {
        DT_TRY(check_factors("rope_short_factors", &own->rope_short_factors,
                             dt_llama_turned(config) / 2, err));
        DT_TRY(check_factors("rope_long_factors", &own->rope_long_factors,
                             dt_llama_turned(config) / 2, err));
    }
out:
    return st;
}

static dt_status check_switches(const dt_model_config *config, dt_error *err)
{
    const dt_llama_config *own = &config->llama;
    dt_status st = DT_OK;

    DT_TRY(check_letters("rope_layers", own->rope_layers, "rn", err));
    DT_TRY(check_letters("window_layers", own->window_layers, "wf", err));
    if (own->rotary_share > 0 && own->rotary_share < 1 &&
        (dt_llama_turned(config) % 2 != 0 || dt_llama_turned(config) < 2))
        DT_THROW(
            err, DT_ERR_RECIPE,
            "model: 'rotary_share' %g rotates %lld of %lld elements of a head; expected an even "
            "number",
            own->rotary_share, (long long)dt_llama_turned(config), (long long)own->head_width);
    if (own->qk_norm_whole && !own->qk_norm)
        DT_THROW(err, DT_ERR_RECIPE, "model: 'qk_norm_whole' requires 'qk_norm'");
    if (own->layer_norm && (own->norm_plus_one || own->block_norms != DT_BLOCK_NORMS_BEFORE))
        DT_THROW(
            err, DT_ERR_RECIPE,
            "model: 'layer_norm' and 'norm_plus_one' or other 'block_norms' cannot be combined");
    if (own->attention_multiplier > 0 && own->query_scalar > 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: 'attention_multiplier' and 'query_scalar' cannot be combined");
    DT_TRY(check_scaling(config, err));
out:
    return st;
}

static dt_status check_rope(const dt_model_config *config, dt_error *err)
{
    const dt_llama_config *own = &config->llama;

    if (dt_llama_turned(config) % 2 != 0 || dt_llama_turned(config) < 2)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "model: heads of width %lld cannot be rotated in pairs; use an even 'head_width'",
            (long long)own->head_width);
    if (!(own->rope_theta >= 1) || !(own->rope_factor >= 1))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model: 'rope_theta' is %g and 'rope_factor' %g; expected 1 or more",
                       own->rope_theta, own->rope_factor);
    if (own->rope_scaling == DT_ROPE_LLAMA3 &&
        (!(own->rope_high_freq_factor > own->rope_low_freq_factor) ||
         !(own->rope_low_freq_factor > 0) || own->rope_original_tokens < 1))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model: 'rope_low_freq_factor' is %g and 'rope_high_freq_factor' %g; "
                       "expected the second above the first",
                       own->rope_low_freq_factor, own->rope_high_freq_factor);
    return DT_OK;
}

static dt_status check(const dt_model_config *config, dt_error *err)
{
    const dt_llama_config *own = &config->llama;
    int64_t heads = config->decoder.heads;
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_check(config, err));
    DT_TRY(dt_model_check_size("kv_heads", own->kv_heads, heads, err));
    DT_TRY(dt_model_check_size("head_width", own->head_width, 1 << 16, err));
    DT_TRY(dt_model_check_size("ffn", own->ffn, 1 << 24, err));
    if (heads % own->kv_heads != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: 'kv_heads' (%lld) does not divide 'heads' (%lld); choose a divisor",
                 (long long)own->kv_heads, (long long)heads);
    DT_TRY(check_switches(config, err));
    DT_TRY(check_rope(config, err));
out:
    return st;
}

/* --- sizes */

static int64_t whole_q_width(const dt_model_config *config)
{
    return dt_size_times(config->decoder.heads, config->llama.head_width);
}

static int64_t whole_kv_width(const dt_model_config *config)
{
    return dt_size_times(config->llama.kv_heads, config->llama.head_width);
}

int64_t dt_llama_kv_heads(const dt_model_config *config)
{
    return dt_tensor_key_heads(&config->tensor, config->llama.kv_heads);
}

int64_t dt_llama_ffn(const dt_model_config *config)
{
    return dt_decoder_share(config, config->llama.ffn);
}

int64_t dt_llama_q_width(const dt_model_config *config)
{
    return dt_size_times(dt_decoder_heads(config), config->llama.head_width);
}

int64_t dt_llama_kv_width(const dt_model_config *config)
{
    return dt_size_times(dt_llama_kv_heads(config), config->llama.head_width);
}

int64_t dt_llama_qkv_width(const dt_model_config *config)
{
    return dt_llama_q_width(config) + 2 * dt_llama_kv_width(config);
}

/* --- parameters, by the names that Hugging Face's transformers has for them */

enum { NONE = DT_SIZE_NONE, EMBED = DT_SIZE_EMBED, VOCAB = DT_SIZE_VOCAB };
enum { QUERIES = DT_SIZE_OWN, KEYS, HEAD, FFN };

static const dt_param_row root_shapes[DT_LLAMA_ROOT_PARAMS] = {
    [DT_LLAMA_EMBED] = {"model.embed_tokens.weight", VOCAB, EMBED, DT_INIT_NORMAL, false, false,
                        DT_CUT_ROWS},
    [DT_LLAMA_NORM] = {"model.norm.weight", EMBED, NONE, DT_INIT_ONE, false, false, DT_CUT_NONE},
    [DT_LLAMA_NORM_B] = {"model.norm.bias", EMBED, NONE, DT_INIT_ZERO, false, false, DT_CUT_NONE},
    [DT_LLAMA_HEAD] = {"lm_head.weight", VOCAB, EMBED, DT_INIT_NORMAL, false, false, DT_CUT_ROWS},
};

static const dt_param_row block_shapes[DT_LLAMA_BLOCK_PARAMS] = {
    [DT_LLAMA_NORM_1] = {"input_layernorm.weight", EMBED, NONE, DT_INIT_ONE, false, false,
                         DT_CUT_NONE},
    [DT_LLAMA_NORM_1_B] = {"input_layernorm.bias", EMBED, NONE, DT_INIT_ZERO, false, false,
                           DT_CUT_NONE},
    [DT_LLAMA_Q_W] = {"self_attn.q_proj.weight", QUERIES, EMBED, DT_INIT_NORMAL, false, false,
                      DT_CUT_ROWS},
    [DT_LLAMA_K_W] = {"self_attn.k_proj.weight", KEYS, EMBED, DT_INIT_NORMAL, true, false,
                      DT_CUT_KEYS},
    [DT_LLAMA_V_W] = {"self_attn.v_proj.weight", KEYS, EMBED, DT_INIT_NORMAL, true, false,
                      DT_CUT_KEYS},
    [DT_LLAMA_Q_B] = {"self_attn.q_proj.bias", QUERIES, NONE, DT_INIT_ZERO, false, false,
                      DT_CUT_ROWS},
    [DT_LLAMA_K_B] = {"self_attn.k_proj.bias", KEYS, NONE, DT_INIT_ZERO, true, false, DT_CUT_KEYS},
    [DT_LLAMA_V_B] = {"self_attn.v_proj.bias", KEYS, NONE, DT_INIT_ZERO, true, false, DT_CUT_KEYS},
    [DT_LLAMA_Q_NORM] = {"self_attn.q_norm.weight", HEAD, NONE, DT_INIT_ONE, false, false,
                         DT_CUT_SUMMED},
    [DT_LLAMA_K_NORM] = {"self_attn.k_norm.weight", HEAD, NONE, DT_INIT_ONE, false, false,
                         DT_CUT_SUMMED},
    [DT_LLAMA_Q_NORM_WHOLE] = {"self_attn.q_norm.weight", QUERIES, NONE, DT_INIT_ONE, false, false,
                               DT_CUT_ROWS},
    [DT_LLAMA_K_NORM_WHOLE] = {"self_attn.k_norm.weight", KEYS, NONE, DT_INIT_ONE, false, false,
                               DT_CUT_KEYS},
    [DT_LLAMA_O_W] = {"self_attn.o_proj.weight", EMBED, QUERIES, DT_INIT_NORMAL, false, false,
                      DT_CUT_COLUMNS},
    [DT_LLAMA_O_B] = {"self_attn.o_proj.bias", EMBED, NONE, DT_INIT_ZERO, false, false,
                      DT_CUT_NONE},
    [DT_LLAMA_AFTER_1] = {"self_attn.after_norm.weight", EMBED, NONE, DT_INIT_ONE, false, false,
                          DT_CUT_NONE},
    [DT_LLAMA_NORM_2] = {"post_attention_layernorm.weight", EMBED, NONE, DT_INIT_ONE, false, false,
                         DT_CUT_NONE},
    [DT_LLAMA_NORM_2_B] = {"post_attention_layernorm.bias", EMBED, NONE, DT_INIT_ZERO, false, false,
                           DT_CUT_NONE},
    [DT_LLAMA_GATE_W] = {"mlp.gate_proj.weight", FFN, EMBED, DT_INIT_NORMAL, false, false,
                         DT_CUT_ROWS},
    [DT_LLAMA_UP_W] = {"mlp.up_proj.weight", FFN, EMBED, DT_INIT_NORMAL, true, false, DT_CUT_ROWS},
    [DT_LLAMA_GATE_B] = {"mlp.gate_proj.bias", FFN, NONE, DT_INIT_ZERO, false, false, DT_CUT_ROWS},
    [DT_LLAMA_UP_B] = {"mlp.up_proj.bias", FFN, NONE, DT_INIT_ZERO, true, false, DT_CUT_ROWS},
    [DT_LLAMA_DOWN_W] = {"mlp.down_proj.weight", EMBED, FFN, DT_INIT_NORMAL, false, false,
                         DT_CUT_COLUMNS},
    [DT_LLAMA_DOWN_B] = {"mlp.down_proj.bias", EMBED, NONE, DT_INIT_ZERO, false, false,
                         DT_CUT_NONE},
    [DT_LLAMA_AFTER_2] = {"mlp.after_norm.weight", EMBED, NONE, DT_INIT_ONE, false, false,
                          DT_CUT_NONE},
};

static int64_t size_elems(const dt_model_config *config, int size)
{
    switch (size) {
    case QUERIES:
        return whole_q_width(config);
    case KEYS:
        return whole_kv_width(config);
    case HEAD:
        return config->llama.head_width;
    default:
        return config->llama.ffn;
    }
}

static int64_t key_heads(const dt_model_config *config)
{
    return config->llama.kv_heads;
}

bool dt_llama_lacks(const dt_model_config *config, int unit, int param)
{
    const dt_llama_config *own = &config->llama;

    if (unit == 0)
        return (param == DT_LLAMA_HEAD && !config->decoder.own_lm_head) ||
               (param == DT_LLAMA_NORM_B && !own->layer_norm);
    return (!own->qkv_bias && param >= DT_LLAMA_Q_B && param <= DT_LLAMA_V_B) ||
           (!own->o_bias && param == DT_LLAMA_O_B) ||
           (!own->mlp_bias &&
            (param == DT_LLAMA_GATE_B || param == DT_LLAMA_UP_B || param == DT_LLAMA_DOWN_B)) ||
           ((!own->qk_norm || own->qk_norm_whole) &&
            (param == DT_LLAMA_Q_NORM || param == DT_LLAMA_K_NORM)) ||
           (!own->qk_norm_whole &&
            (param == DT_LLAMA_Q_NORM_WHOLE || param == DT_LLAMA_K_NORM_WHOLE)) ||
           (!dt_llama_norms_before(config) &&
            (param == DT_LLAMA_NORM_1 || param == DT_LLAMA_NORM_2)) ||
           (!own->layer_norm && (param == DT_LLAMA_NORM_1_B || param == DT_LLAMA_NORM_2_B)) ||
           (!dt_llama_norms_after(config) &&
            (param == DT_LLAMA_AFTER_1 || param == DT_LLAMA_AFTER_2));
}

static dt_init_kind init_of(const dt_model_config *config, const dt_param_row *row)
{
    return row->init == DT_INIT_ONE && config->llama.norm_plus_one ? DT_INIT_ZERO : row->init;
}

static const dt_param_rows rows = {
    .root = root_shapes,
    .root_count = DT_LLAMA_ROOT_PARAMS,
    .block = block_shapes,
    .block_count = DT_LLAMA_BLOCK_PARAMS,
    .block_prefix = "model.layers.",
    .init_std = 0.02,
    .size = size_elems,
    .key_heads = key_heads,
    .lacks = dt_llama_lacks,
    .init = init_of,
};

static void params(dt_param_sink *sink, const dt_model_config *config, int unit)
{
    dt_decoder_params(sink, config, unit, &rows);
}

/* --- FLOPs of a token */

/* Total 6 N + 12 L H D T. N counts the matrices that a token is multiplied with: per block C (H+2G) D for
 * q, k and v, H D C after attention, 3 C F; the head once, without its padding. The second term is
 * attention's two products, counted without the causal mask as is usual, and without windows. Backward is twice
 * forward. Recomputed under full: all of a block except its last product, unless a norm reads its result. */
static dt_unit_flops flops(const dt_model_config *config, int unit)
{
    double C = (double)config->decoder.embed, F = (double)config->llama.ffn;
    double T = (double)config->tokens;
    double HD = (double)whole_q_width(config), Q = HD + 2 * (double)whole_kv_width(config);
    double block = 2 * (C * Q + HD * C + 3 * C * F) + 4 * T * HD;

    if (unit == 0)
        return dt_decoder_lora_flops(
            config, unit, dt_decoder_flops(config, 2 * (double)config->decoder.vocab * C, 0), 0);
    return dt_decoder_lora_flops(
        config, unit,
        dt_decoder_flops(config, block, dt_llama_norms_after(config) ? block : block - 2 * C * F),
        4 * T * HD);
}

static dt_unit_sums sums(const dt_model_config *config, int unit)
{
    dt_unit_sums out = dt_decoder_sums(config, unit);

    if (unit > 0 && dt_llama_norms_after(config))
        out.again = out.forward;
    return out;
}

/* --- activations */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The table of engine/model/llama/model_int.h, which explains each line. */
static dt_row_cost row_cost(const dt_model_config *config, bool backward)
{
    const dt_llama_config *own = &config->llama;
    int64_t L = config->decoder.layers, C = config->decoder.embed, H = dt_decoder_heads(config);
    int64_t A = dt_llama_q_width(config), Q = dt_llama_qkv_width(config), F = dt_llama_ffn(config);
    int64_t R = own->qk_norm ? A + dt_llama_kv_width(config) : 0;
    int64_t r = own->qk_norm_whole ? 2 : own->qk_norm ? H + dt_llama_kv_heads(config) : 0;
    int64_t N = dt_llama_norms_before(config) ? 2 : 0, M = dt_llama_norms_after(config) ? 2 : 0;
    int64_t S = own->layer_norm ? 2 * N : N; /* statistics of norms before */
    int64_t ends = 2 + (own->qk_norm_whole ? 1 : 0) + (own->layer_norm ? 1 : 0);
    int64_t scratch = C + larger(F, Q);
    bool capped = own->logits_softcap > 0;

    if (!backward)
        return (dt_row_cost){(2 + N) * C + Q + A + 2 * F, ends + S + M + H + r, scratch, false};
    switch (config->recompute) {
    case DT_RECOMPUTE_SELECTIVE:
        return (dt_row_cost){L * ((2 + M) * C + Q + A + 2 * F) + 2 * C + larger(C, A),
                             L * (H + M) + ends + S + r, scratch + R, capped};
    case DT_RECOMPUTE_FULL:
        return (dt_row_cost){L * C + (3 + M) * C + Q + A + 2 * F + R + larger(C, A),
                             ends + S + M + H + r, scratch, capped};
    case DT_RECOMPUTE_NONE:
    case DT_RECOMPUTE_NOTHING:
        break;
    }
    return (dt_row_cost){
        L * ((2 + N + M) * C + Q + A + (dt_model_keeps_all(config) ? 3 : 2) * F + R) + 2 * C +
            larger(C, A),
        L * (S + M + H + r) + ends, scratch, capped};
}

/* Adds the tables of angles. */
static int64_t activation_bytes(const dt_model_config *config)
{
    int64_t angles = dt_size_times(config->decoder.context,
                                   dt_llama_angle_tables(config) * dt_llama_turned(config) * 4);

    return dt_size_plus(dt_decoder_activation_bytes(config, row_cost), angles);
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
    "model.tied",
    "model.attention_dropout",
    "model.kv_heads",
    "model.head_width",
    "model.ffn",
    "model.norm_eps",
    "model.scale_embedding",
    "model.family",
#define PATH(type, name) "model." #name,
    DT_SWITCHES(PATH) "batch.tokens",
    "data.tokens",
    "data.cross_documents",
    "data.format",
    "data.chat_template",
    "data.loss",
    "data.too_long",
    "data.pack",
    "data.end_of_text",
    "model.end_ids",
    NULL,
};

static const char *const switches[] = {"model.scale_embedding", DT_SWITCHES(PATH) NULL};
#undef PATH

static int64_t ffn_of(const dt_model_config *config)
{
    return config->llama.ffn;
}

static const dt_lora_target targets[] = {
    {"q", "q_proj", "self_attn.q_proj.weight"},    {"k", "k_proj", "self_attn.k_proj.weight"},
    {"v", "v_proj", "self_attn.v_proj.weight"},    {"o", "o_proj", "self_attn.o_proj.weight"},
    {"gate", "gate_proj", "mlp.gate_proj.weight"}, {"up", "up_proj", "mlp.up_proj.weight"},
    {"down", "down_proj", "mlp.down_proj.weight"}, {0},
};

static const dt_divided_size divided[] = {
    {"model.heads", dt_decoder_whole_heads, false, 1},
    {"model.kv_heads", key_heads, true, 1},
    {"model.ffn", ffn_of, false, 1},
    {"model.vocab", dt_decoder_whole_vocab, false, DT_VOCAB_MULTIPLE},
    {0},
};

const dt_architecture dt_architecture_llama = {
    .name = "llama",
    .item = "token",
    .reads = reads,
    .configure = configure,
    .check = check,
    .inputs = dt_decoder_inputs,
    .units = dt_decoder_units,
    .params = params,
    .flops = flops,
    .flops_formula = "6 N + 12 L H D T",
    .activation_bytes = activation_bytes,
    .divided = divided,
    .sums = sums,
    .published = dt_published_llama,
    .switches = switches,
    .check_switches = check_switches,
    .targets = targets,
    .rows = &rows,
};
