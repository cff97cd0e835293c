#include "recipes/architecture/llama.h"

#include "recipes/architecture/architecture.h"
#include "recipes/architecture/published.h"

#include "base/banned.h"

#define INIT_STD 0.02

extern const dt_architecture dt_architecture_llama;
extern const dt_published dt_published_llama[];

/* --- config */

static void configure(dt_model_config *out, const dt_recipe *recipe, int64_t vocab)
{
    int64_t wanted = recipe->model.vocab > 0 ? recipe->model.vocab : vocab;
    int64_t heads = recipe->model.heads, width = recipe->model.head_width;

    out->llama = (dt_llama_config){
        .layers = recipe->model.layers,
        .heads = heads,
        .kv_heads = recipe->model.kv_heads > 0 ? recipe->model.kv_heads : heads,
        .embed = recipe->model.embed,
        .head_width = width > 0 || heads == 0 ? width : recipe->model.embed / heads,
        .ffn = recipe->model.ffn,
        .vocab = wanted,
        .vocab_padded = dt_vocab_pad(wanted),
        .context = recipe->batch.tokens,
        .dropout = recipe->model.dropout,
        .attention_dropout = recipe->model.attention_dropout,
        .norm_eps = recipe->model.norm_eps,
        .rope_theta = recipe->model.rope_theta,
        .rope_scaling = recipe->model.rope_scaling,
        .rope_factor = recipe->model.rope_factor,
        .rope_low_freq_factor = recipe->model.rope_low_freq_factor,
        .rope_high_freq_factor = recipe->model.rope_high_freq_factor,
        .rope_original_tokens = recipe->model.rope_original_tokens,
        .qkv_bias = recipe->model.qkv_bias,
        .qk_norm = recipe->model.qk_norm,
        .own_lm_head = !recipe->model.tied,
    };
}

static dt_status check_rope(const dt_llama_config *own, dt_error *err)
{
    if (own->head_width % 2 != 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model: heads of %lld numbers cannot be rotated in pairs; choose an even "
                       "'head_width'",
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
    dt_status st = DT_OK;

    DT_TRY(dt_model_check_size("layers", own->layers, DT_BLOCKS_MAX, err));
    DT_TRY(dt_model_check_size("embed", own->embed, 1 << 20, err));
    DT_TRY(dt_model_check_size("heads", own->heads, 1 << 16, err));
    DT_TRY(dt_model_check_size("kv_heads", own->kv_heads, own->heads, err));
    DT_TRY(dt_model_check_size("head_width", own->head_width, 1 << 16, err));
    DT_TRY(dt_model_check_size("ffn", own->ffn, 1 << 24, err));
    DT_TRY(dt_model_check_size("vocab", own->vocab, 1 << 24, err));
    DT_TRY(dt_model_check_size("context", own->context, 1 << 24, err));
    DT_TRY(dt_model_check_size("tokens", config->tokens, own->context, err));
    if (own->heads % own->kv_heads != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: 'kv_heads' (%lld) does not divide 'heads' (%lld); choose a divisor",
                 (long long)own->kv_heads, (long long)own->heads);
    if (own->vocab_padded < own->vocab || own->vocab_padded % DT_VOCAB_MULTIPLE != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: a vocabulary of %lld is padded to %lld; expected the next multiple of %d",
                 (long long)own->vocab, (long long)own->vocab_padded, DT_VOCAB_MULTIPLE);
    DT_TRY(dt_model_check_dropout("dropout", own->dropout, err));
    DT_TRY(dt_model_check_dropout("attention_dropout", own->attention_dropout, err));
    DT_TRY(check_rope(own, err));
out:
    return st;
}

static int inputs(dt_input *out, const dt_model_config *config)
{
    out[DT_LLAMA_TOKENS] = (dt_input){"tokens", DT_I32, config->tokens};
    out[DT_LLAMA_TARGETS] = (dt_input){"targets", DT_I32, config->tokens};
    return DT_LLAMA_INPUTS;
}

static int units(const dt_model_config *config)
{
    return (int)config->llama.layers + 1;
}

/* --- parameters, by the names that Hugging Face's transformers has for them */

/* A row of the table: sizes are in these units, so that one list serves every model. */
typedef enum size_of { NONE, EMBED, QUERIES, KEYS, HEAD, FFN, VOCAB } size_of;

typedef struct param_row {
    const char *name;
    size_of rows, cols; /* cols NONE: one dimension */
    dt_init_kind init;
    bool joined; /* to the row before */
} param_row;

static const param_row root_shapes[DT_LLAMA_ROOT_PARAMS] = {
    [DT_LLAMA_EMBED] = {"model.embed_tokens.weight", VOCAB, EMBED, DT_INIT_NORMAL, false},
    [DT_LLAMA_NORM] = {"model.norm.weight", EMBED, NONE, DT_INIT_ONE, false},
    [DT_LLAMA_HEAD] = {"lm_head.weight", VOCAB, EMBED, DT_INIT_NORMAL, false},
};

static const param_row block_shapes[DT_LLAMA_BLOCK_PARAMS] = {
    [DT_LLAMA_NORM_1] = {"input_layernorm.weight", EMBED, NONE, DT_INIT_ONE, false},
    [DT_LLAMA_Q_W] = {"self_attn.q_proj.weight", QUERIES, EMBED, DT_INIT_NORMAL, false},
    [DT_LLAMA_K_W] = {"self_attn.k_proj.weight", KEYS, EMBED, DT_INIT_NORMAL, true},
    [DT_LLAMA_V_W] = {"self_attn.v_proj.weight", KEYS, EMBED, DT_INIT_NORMAL, true},
    [DT_LLAMA_Q_B] = {"self_attn.q_proj.bias", QUERIES, NONE, DT_INIT_ZERO, false},
    [DT_LLAMA_K_B] = {"self_attn.k_proj.bias", KEYS, NONE, DT_INIT_ZERO, true},
    [DT_LLAMA_V_B] = {"self_attn.v_proj.bias", KEYS, NONE, DT_INIT_ZERO, true},
    [DT_LLAMA_Q_NORM] = {"self_attn.q_norm.weight", HEAD, NONE, DT_INIT_ONE, false},
    [DT_LLAMA_K_NORM] = {"self_attn.k_norm.weight", HEAD, NONE, DT_INIT_ONE, false},
    [DT_LLAMA_O_W] = {"self_attn.o_proj.weight", EMBED, QUERIES, DT_INIT_NORMAL, false},
    [DT_LLAMA_NORM_2] = {"post_attention_layernorm.weight", EMBED, NONE, DT_INIT_ONE, false},
    [DT_LLAMA_GATE_W] = {"mlp.gate_proj.weight", FFN, EMBED, DT_INIT_NORMAL, false},
    [DT_LLAMA_UP_W] = {"mlp.up_proj.weight", FFN, EMBED, DT_INIT_NORMAL, true},
    [DT_LLAMA_DOWN_W] = {"mlp.down_proj.weight", EMBED, FFN, DT_INIT_NORMAL, false},
};

static int64_t size_elems(const dt_llama_config *config, size_of size)
{
    switch (size) {
    case EMBED:
        return config->embed;
    case QUERIES:
        return dt_size_times(config->heads, config->head_width);
    case KEYS:
        return dt_size_times(config->kv_heads, config->head_width);
    case HEAD:
        return config->head_width;
    case FFN:
        return config->ffn;
    case VOCAB:
        return config->vocab_padded;
    case NONE:
        break;
    }
    return 1;
}

bool dt_llama_lacks(const dt_llama_config *config, int unit, int param)
{
    if (unit == 0)
        return param == DT_LLAMA_HEAD && !config->own_lm_head;
    return (!config->qkv_bias && param >= DT_LLAMA_Q_B && param <= DT_LLAMA_V_B) ||
           (!config->qk_norm && (param == DT_LLAMA_Q_NORM || param == DT_LLAMA_K_NORM));
}

static void add(dt_param_sink *sink, const dt_llama_config *config, int unit, const param_row *row)
{
    dt_param_shape shape = {.ndim = row->cols == NONE ? 1 : 2,
                            .dim = {size_elems(config, row->rows), size_elems(config, row->cols)},
                            .stored_rows = row->rows == VOCAB ? config->vocab : 0,
                            .joined = row->joined,
                            .init = row->init,
                            .init_std = row->init == DT_INIT_NORMAL ? INIT_STD : 0};

    if (unit == 0)
        dt_param_add(sink, &shape, "%s", row->name);
    else
        dt_param_add(sink, &shape, "model.layers.%d.%s", unit - 1, row->name);
}

static void params(dt_param_sink *sink, const dt_model_config *config, int unit)
{
    const param_row *rows = unit == 0 ? root_shapes : block_shapes;
    int count = unit == 0 ? DT_LLAMA_ROOT_PARAMS : DT_LLAMA_BLOCK_PARAMS;

    for (int i = 0; i < count; i++)
        if (!dt_llama_lacks(&config->llama, unit, i))
            add(sink, &config->llama, unit, &rows[i]);
}

/* --- FLOPs of a token */

/* In all 6 N + 12 L H D T, N the matrices that a token is multiplied with: per block C (H+2G) D for
 * q, k and v, H D C behind attention, 3 C F; the head once, without its padding. The second term is
 * attention's two products, the causal half counted whole as is usual. Backward is twice forward.
 * Computed again under full: all of a block but its last product. */
static dt_unit_flops flops(const dt_model_config *config, int unit)
{
    const dt_llama_config *own = &config->llama;
    double C = (double)own->embed, F = (double)own->ffn, T = (double)config->tokens;
    double HD = (double)dt_llama_q_width(own), Q = (double)dt_llama_qkv_width(own);
    bool full = config->recompute == DT_RECOMPUTE_FULL;
    double block = 2 * (C * Q + HD * C + 3 * C * F) + 4 * T * HD;
    double forward = unit == 0 ? 2 * (double)own->vocab * C : block;

    return (dt_unit_flops){.forward = forward,
                           .backward = 2 * forward,
                           .again = full && unit > 0 ? block - 2 * C * F : 0};
}

/* --- activations */

/* What a pass takes a row of: numbers of the compute type, and fp32 statistics; and over those of
 * `scratch` lies a chunk of logits. */
typedef struct row_cost {
    int64_t widths, stats, scratch;
} row_cost;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The table of engine/model/llama/model_int.h, where each line has its reason. */
static row_cost row_cost_of(const dt_model_config *config, bool backward)
{
    const dt_llama_config *own = &config->llama;
    int64_t L = own->layers, C = own->embed, H = own->heads, A = dt_llama_q_width(own);
    int64_t Q = dt_llama_qkv_width(own), F = own->ffn;
    int64_t R = own->qk_norm ? A + dt_llama_kv_width(own) : 0;
    int64_t r = own->qk_norm ? H + own->kv_heads : 0;
    int64_t products = Q + A + 2 * F, scratch = C + larger(F, Q);

    if (!backward)
        return (row_cost){4 * C + products, 4 + H + r, scratch};
    switch (config->recompute) {
    case DT_RECOMPUTE_SELECTIVE:
        return (row_cost){L * (2 * C + products) + 2 * C + larger(C, A), L * H + 4 + r,
                          scratch + R};
    case DT_RECOMPUTE_FULL:
        return (row_cost){L * C + 3 * C + products + R + larger(C, A), 4 + H + r, scratch};
    case DT_RECOMPUTE_NONE:
        break;
    }
    return (row_cost){L * (4 * C + products + R) + 2 * C + larger(C, A), L * (2 + H + r) + 2,
                      scratch};
}

/* N = B T rows. */
static int64_t pass_bytes(const dt_model_config *config, bool backward)
{
    int64_t rows = dt_size_times(config->batch, config->tokens);
    int64_t type_bytes = (int64_t)dt_dtype_bytes(config->dtype);
    int64_t row = config->llama.vocab_padded * (backward ? type_bytes : 4);
    int64_t logits = dt_size_times(rows, row);
    row_cost cost = row_cost_of(config, backward);
    int64_t scratch = dt_size_times(rows, cost.scratch * type_bytes);

    if (logits > DT_LOGITS_BYTES)
        logits = larger(row, DT_LOGITS_BYTES / row * row);
    return dt_size_plus(dt_size_times(rows, cost.widths * type_bytes + 4 * cost.stats),
                        larger(logits, scratch));
}

/* The larger of a pass with backward and one without, and the table of angles. */
static int64_t activation_bytes(const dt_model_config *config)
{
    int64_t angles = dt_size_times(config->llama.context, config->llama.head_width * 4);
    int64_t with = config->inference ? 0 : pass_bytes(config, true);

    return dt_size_plus(larger(with, pass_bytes(config, false)), angles);
}

static const char *const reads[] = {
    "model.preset",
    "model.heads",
    "model.vocab",
    "model.dropout",
    "model.tied",
    "model.attention_dropout",
    "model.kv_heads",
    "model.head_width",
    "model.ffn",
    "model.rope_theta",
    "model.rope_scaling",
    "model.rope_factor",
    "model.norm_eps",
    "model.qkv_bias",
    "model.qk_norm",
    "batch.tokens",
    "data.tokens",
    "model.rope_low_freq_factor",
    "model.rope_high_freq_factor",
    "model.rope_original_tokens",
    NULL,
};

const dt_architecture dt_architecture_llama = {
    .name = "llama",
    .item = "token",
    .reads = reads,
    .configure = configure,
    .check = check,
    .inputs = inputs,
    .units = units,
    .params = params,
    .flops = flops,
    .flops_formula = "6 N + 12 L H D T",
    .activation_bytes = activation_bytes,
    .published = dt_published_llama,
};
