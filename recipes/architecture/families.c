/* families: the models of Hugging Face's transformers that kind llama computes: the config.json fields that set its
 * switches (recipes/fields/switch_table.h), and their tensors' names.
 *
 * Adding one a row of dt_published_llama, with the keys of its config.json, and its tensors if their names differ. A
 *            switch that it does not name has its default. tests/golden/make_families_fixture.py and
 *            tests/peers/families.py get a configuration
 */
#include <string.h>

#include "recipes/architecture/published.h"

extern const dt_published dt_published_llama[];

/* --- keys */

static const dt_published_word scalings[] = {{"default", "none"},
                                             {"linear", "linear"},
                                             {"llama3", "llama3"},
                                             {"yarn", "yarn"},
                                             {"longrope", "longrope"},
                                             {"dynamic", "dynamic"},
                                             {0}};
/* Phi-3's older names. */
static const dt_published_word phi3_scalings[] = {
    {"default", "none"}, {"longrope", "longrope"}, {"su", "longrope"}, {"yarn", "longrope"}, {0}};

static const dt_published_word gates[] = {
    {"silu", "silu"},          {"swish", "silu"}, {"gelu_pytorch_tanh", "gelu_tanh"},
    {"gelu_new", "gelu_tanh"}, {"gelu", "gelu"},  {0}};

static const dt_published_word windows[] = {
    {"sliding_attention", "w"}, {"full_attention", "f"}, {0}};
static const dt_published_word ropes[] = {{"1", "r"}, {"0", "n"}, {0}};

/* clang-format off */ /* a row a field */

/* Newer versions keep all fields of rotary positions in one object, "rope_parameters": huggingface.c moves
 * them here. */
#define ROPE_OF(theta, types, original, in_original)                                                  \
    {.key = "rope_theta", .path = "model.rope_theta", .absent = theta},                               \
    {.key = "rope_scaling.rope_type", .also = {"rope_scaling.type"}, .path = "model.rope_scaling",    \
     .absent = "none", .words = types},                                                               \
    {.key = "rope_scaling.factor", .path = "model.rope_factor",                                       \
     .when = "linear llama3 yarn longrope dynamic"},                                                  \
    {.key = "rope_scaling.low_freq_factor", .path = "model.rope_low_freq_factor", .when = "llama3"},  \
    {.key = "rope_scaling.high_freq_factor", .path = "model.rope_high_freq_factor",                   \
     .when = "llama3"},                                                                               \
    {.key = original, .path = "model.rope_original_tokens", .absent = in_original,                    \
     .when = "llama3 yarn longrope dynamic"},                                                         \
    {.key = "rope_scaling.attention_factor", .path = "model.rope_attention_factor", .absent = "0",    \
     .when = "yarn longrope"},                                                                        \
    {.key = "rope_scaling.beta_fast", .path = "model.rope_beta_fast", .absent = "32", .when = "yarn"}, \
    {.key = "rope_scaling.beta_slow", .path = "model.rope_beta_slow", .absent = "1", .when = "yarn"}, \
    {.key = "rope_scaling.mscale", .path = "model.rope_mscale", .absent = "0", .when = "yarn"},       \
    {.key = "rope_scaling.mscale_all_dim", .path = "model.rope_mscale_all", .absent = "0",            \
     .when = "yarn"},                                                                                 \
    {.key = "rope_scaling.truncate", .path = "model.rope_truncate", .absent = "true", .when = "yarn"}, \
    {.key = "rope_scaling.short_factor", .path = "model.rope_short_factors", .when = "longrope"},     \
    {.key = "rope_scaling.long_factor", .path = "model.rope_long_factors", .when = "longrope"}
#define ROPE(theta) ROPE_OF(theta, scalings, "rope_scaling.original_max_position_embeddings", NULL),  \
    {.key = "partial_rotary_factor", .must = "1.0", .or_null = true}

/* heads of keys: 0 is num_attention_heads. head_dim: 0 is hidden_size / num_attention_heads. The arguments are the
 * defaults of the class. */
#define SIZES(kv_heads, head_dim, eps, tied) SIZES_WITH("rms_norm_eps", kv_heads, head_dim, eps, tied)
#define SIZES_WITH(eps_key, kv_heads, head_dim, eps, tied)                                                          \
    {.key = "vocab_size",              .path = "model.vocab"},                                        \
    {.key = "hidden_size",             .path = "model.embed"},                                        \
    {.key = "num_hidden_layers",       .path = "model.layers"},                                       \
    {.key = "num_attention_heads",     .path = "model.heads"},                                        \
    {.key = "num_key_value_heads",     .path = "model.kv_heads", .absent = kv_heads},                 \
    {.key = "head_dim",                .path = "model.head_width", .absent = head_dim},               \
    {.key = "intermediate_size",       .path = "model.ffn"},                                          \
    {.key = eps_key,                   .path = "model.norm_eps", .absent = eps},                      \
    {.key = "tie_word_embeddings",     .path = "model.tied", .absent = tied},                         \
    {.key = "max_position_embeddings", .path = "batch.tokens", .least = true}
#define COMMON(kv_heads, head_dim, eps, tied)                                                         \
    SIZES(kv_heads, head_dim, eps, tied),                                                             \
    {.key = "hidden_act", .path = "model.gate", .absent = "silu", .words = gates}

#define ATTENTION_BIAS                                                                                \
    {.key = "attention_bias", .path = "model.qkv_bias", .absent = "false"},                           \
    {.key = "attention_bias", .path = "model.o_bias",   .absent = "false"}
#define MLP_BIAS {.key = "mlp_bias", .path = "model.mlp_bias", .absent = "false"}

#define WINDOW(tokens) {.key = "sliding_window", .path = "model.window", .absent = tokens, .null = "0"}
#define WINDOW_LAYERS(pattern)                                                                        \
    {.key = "layer_types", .path = "model.window_layers", .absent = pattern, .words = windows,        \
     .letters = true}
/* Only with use_sliding_window; settle_window and finish_window. */
#define CHOSEN_WINDOW WINDOW("0"), WINDOW_LAYERS("w"), {.key = "use_sliding_window"}, {.key = "max_window_layers"}

static const dt_published_key llama[] = {
    COMMON("0", "0", "1e-6", "false"), ROPE("10000"), ATTENTION_BIAS, MLP_BIAS, {0}};
static const dt_published_key qwen2[] = {
    COMMON("0", "0", "1e-6", "false"), ROPE("10000"), CHOSEN_WINDOW,
    {.path = "model.qkv_bias", .absent = "true"}, {0}};
static const dt_published_key qwen3[] = {
    COMMON("0", "128", "1e-6", "false"), ROPE("10000"), CHOSEN_WINDOW, ATTENTION_BIAS,
    {.path = "model.qk_norm", .absent = "true"}, {0}};
static const dt_published_key mistral[] = {
    COMMON("8", "0", "1e-6", "false"), ROPE("10000"), WINDOW("4096"), {0}};
static const dt_published_key phi3[] = {
    COMMON("0", "0", "1e-5", "false"),
    ROPE_OF("10000", phi3_scalings, "original_max_position_embeddings", "4096"),
    {.key = "rope_scaling.original_max_position_embeddings"}, /* the class takes that outside the object */
    {.key = "partial_rotary_factor", .path = "model.rotary_share", .absent = "1"}, WINDOW("0"), {0}};
static const dt_published_key granite[] = {
    COMMON("0", "0", "1e-6", "false"), ROPE("10000"), ATTENTION_BIAS, MLP_BIAS,
    {.key = "embedding_multiplier", .path = "model.embedding_multiplier", .absent = "1"},
    {.key = "residual_multiplier",  .path = "model.residual_multiplier", .absent = "1"},
    {.key = "attention_multiplier", .path = "model.attention_multiplier", .absent = "1", .positive = true},
    {.key = "logits_scaling",       .path = "model.logits_divisor", .absent = "1"}, {0}};
static const dt_published_key olmo2[] = {
    COMMON("0", "0", "1e-5", "false"), ROPE("10000"), ATTENTION_BIAS,
    {.path = "model.block_norms", .absent = "after"}, {.path = "model.qk_norm", .absent = "true"},
    {.path = "model.qk_norm_whole", .absent = "true"}, {0}};
static const dt_published_key olmo3[] = {
    COMMON("0", "0", "1e-5", "false"), ROPE("500000"), ATTENTION_BIAS, WINDOW("4096"), WINDOW_LAYERS("wwwf"),
    {.key = "rope_local_base_freq", .path = "model.rope_local_theta", .absent = "500000", .positive = true},
    {.path = "model.block_norms", .absent = "after"}, {.path = "model.qk_norm", .absent = "true"},
    {.path = "model.qk_norm_whole", .absent = "true"}, {0}};
static const dt_published_key smollm3[] = {
    COMMON("4", "0", "1e-6", "true"), ROPE("2000000"), ATTENTION_BIAS, MLP_BIAS, CHOSEN_WINDOW,
    {.key = "no_rope_layers", .path = "model.rope_layers", .absent = "rrrn", .words = ropes, .letters = true},
    {.key = "no_rope_layer_interval"}, {0}};

#define GEMMA(theta)                                                                                  \
    SIZES("4", "256", "1e-6", "true"), ROPE(theta), ATTENTION_BIAS, WINDOW("4096"),                   \
    {.key = "hidden_activation", .path = "model.gate", .absent = "gelu_tanh", .words = gates},        \
    {.key = "hidden_act"}, /* not read */                                                             \
    {.key = "query_pre_attn_scalar", .path = "model.query_scalar", .absent = "256", .positive = true}, \
    {.key = "use_bidirectional_attention", .must = "false", .or_null = true},                         \
    {.path = "model.scale_embedding", .absent = "true"}, {.path = "model.norm_plus_one", .absent = "true"}, \
    {.path = "model.block_norms", .absent = "both"}
/* The class takes gelu for its approximation, which published files mean by it. */
static const dt_published_word gemma_gates[] = {
    {"gelu_pytorch_tanh", "gelu_tanh"}, {"gelu", "gelu_tanh"}, {"gelu_new", "gelu_tanh"}, {"silu", "silu"}, {0}};
static const dt_published_key gemma[] = {
    SIZES("16", "256", "1e-6", "true"), ROPE("10000"), ATTENTION_BIAS,
    {.key = "hidden_act", .path = "model.gate", .absent = "gelu_tanh", .words = gemma_gates},
    {.key = "hidden_activation"}, /* not read */
    {.key = "use_bidirectional_attention", .must = "false", .or_null = true},
    {.path = "model.scale_embedding", .absent = "true"}, {.path = "model.norm_plus_one", .absent = "true"}, {0}};
static const dt_published_key gemma2[] = {
    GEMMA("10000"), WINDOW_LAYERS("wf"),
    {.key = "attn_logit_softcapping", .path = "model.attention_softcap", .absent = "50", .null = "0"},
    {.key = "final_logit_softcapping", .path = "model.logits_softcap", .absent = "30", .null = "0"}, {0}};
static const dt_published_key gemma3[] = {
    GEMMA("1000000"), WINDOW_LAYERS("wwwwwf"), {.path = "model.qk_norm", .absent = "true"},
    {.key = "rope_local_base_freq", .path = "model.rope_local_theta", .absent = "10000", .positive = true},
    {.key = "sliding_window_pattern"}, {.key = "_sliding_window_pattern"}, /* settle_gemma3 */
    {.key = "attn_logit_softcapping", .must = "null"},
    {.key = "final_logit_softcapping", .path = "model.logits_softcap", .absent = "0", .null = "0"}, {0}};

static const dt_published_key stablelm[] = {
    SIZES_WITH("layer_norm_eps", "32", "0", "1e-5", "false"),
    ROPE_OF("10000", scalings, "rope_scaling.original_max_position_embeddings", NULL),
    {.key = "partial_rotary_factor", .path = "model.rotary_share", .absent = "0.25"},
    {.key = "hidden_act", .path = "model.gate", .absent = "silu", .words = gates},
    {.key = "use_qkv_bias", .path = "model.qkv_bias", .absent = "false"}, {.key = "hidden_dropout"},
    {.key = "qk_layernorm", .must = "false"}, {.key = "use_parallel_residual", .must = "false"},
    {.path = "model.layer_norm", .absent = "true"}, {0}};

/* --- tensors */

#define SAME(name) {.ours = "model.layers.*." name, .theirs = "layers.*." name}
#define ENDS                                                                                          \
    {.ours = "model.embed_tokens.weight", .theirs = "embed_tokens.weight"},                           \
    {.ours = "model.norm.weight", .theirs = "norm.weight"},                                           \
    {.ours = "lm_head.weight", .theirs = "/lm_head.weight"}
#define OUTPUTS                                                                                       \
    SAME("self_attn.o_proj.weight"), SAME("self_attn.o_proj.bias"), SAME("mlp.down_proj.weight"),     \
    SAME("mlp.down_proj.bias")
#define MATRICES                                                                                      \
    OUTPUTS, SAME("self_attn.q_proj.weight"), SAME("self_attn.k_proj.weight"),                        \
    SAME("self_attn.v_proj.weight"), SAME("self_attn.q_proj.bias"), SAME("self_attn.k_proj.bias"),    \
    SAME("self_attn.v_proj.bias"), SAME("self_attn.q_norm.weight"), SAME("self_attn.k_norm.weight"),  \
    SAME("mlp.gate_proj.weight"), SAME("mlp.up_proj.weight"), SAME("mlp.gate_proj.bias"),             \
    SAME("mlp.up_proj.bias")
#define NORM(of, name) {.ours = "model.layers.*." of ".weight", .theirs = "layers.*." name ".weight"}
#define JOINED(of, name, number, count)                                                               \
    {.ours = "model.layers.*." of ".weight", .theirs = "layers.*." name ".weight",                    \
     .part = number, .parts = count}

static const dt_published_tensor before[] = {
    ENDS, MATRICES, SAME("input_layernorm.weight"), SAME("post_attention_layernorm.weight"), {0}};
static const dt_published_tensor biased[] = {
    ENDS, MATRICES, SAME("input_layernorm.weight"), SAME("post_attention_layernorm.weight"),
    {.ours = "model.norm.bias", .theirs = "norm.bias"}, SAME("input_layernorm.bias"),
    SAME("post_attention_layernorm.bias"), {0}};
static const dt_published_tensor after[] = {
    ENDS, MATRICES, NORM("self_attn.after_norm", "post_attention_layernorm"),
    NORM("mlp.after_norm", "post_feedforward_layernorm"), {0}};
static const dt_published_tensor both[] = {
    ENDS, MATRICES, SAME("input_layernorm.weight"),
    NORM("self_attn.after_norm", "post_attention_layernorm"),
    NORM("post_attention_layernorm", "pre_feedforward_layernorm"),
    NORM("mlp.after_norm", "post_feedforward_layernorm"), {0}};
static const dt_published_tensor joined[] = {
    ENDS, OUTPUTS, SAME("input_layernorm.weight"), SAME("post_attention_layernorm.weight"),
    JOINED("self_attn.q_proj", "self_attn.qkv_proj", 0, 3),
    JOINED("self_attn.k_proj", "self_attn.qkv_proj", 1, 3),
    JOINED("self_attn.v_proj", "self_attn.qkv_proj", 2, 3),
    JOINED("mlp.gate_proj", "mlp.gate_up_proj", 0, 2), JOINED("mlp.up_proj", "mlp.gate_up_proj", 1, 2), {0}};
/* clang-format on */

/* The frequencies, saved by older versions. */
static const char *const buffers[] = {"layers.*.self_attn.rotary_emb.inv_freq",
                                      "rotary_emb.inv_freq", NULL};

/* --- what the classes derive */

static bool is_null(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);

    return value == NULL || json_is_null(value);
}

static json_int_t number_at(const json_t *config, const char *key, json_int_t absent)
{
    return is_null(config, key) ? absent : json_integer_value(json_object_get(config, key));
}

/* Sets a list with an item for each block, unless the file has it: `at` in blocks for which `is`, else `other`. */
static void set_layers(json_t *config, const char *key,
                       bool (*is)(const json_t *config, json_int_t), json_t *at, json_t *other)
{
    json_t *list = json_array();
    json_int_t layers = number_at(config, "num_hidden_layers", 0);

    for (json_int_t l = 0; l < layers && l < 1000; l++)
        json_array_append(list, is(config, l) ? at : other);
    if (is_null(config, key))
        json_object_set(config, key, list);
    json_decref(list);
    json_decref(at);
    json_decref(other);
}

static bool is_after_full(const json_t *config, json_int_t layer)
{
    return layer >= number_at(config, "max_window_layers", 28);
}

/* Qwen: without use_sliding_window there is none; else the last blocks have it. */
static void settle_window(json_t *config)
{
    if (!json_is_true(json_object_get(config, "use_sliding_window"))) {
        (void)json_object_del(config, "sliding_window");
        (void)json_object_del(config, "layer_types");
        return;
    }
    if (json_object_get(config, "sliding_window") == NULL)
        json_object_set_new(config, "sliding_window", json_integer(4096));
    set_layers(config, "layer_types", is_after_full, json_string("sliding_attention"),
               json_string("full_attention"));
}

static void finish_window(json_t *config)
{
    json_object_set_new(config, "use_sliding_window",
                        json_boolean(!is_null(config, "sliding_window")));
}

static bool is_rotated(const json_t *config, json_int_t layer)
{
    json_int_t every = number_at(config, "no_rope_layer_interval", 4);

    return every < 1 || (layer + 1) % every != 0;
}

static bool is_not_rotated(const json_t *config, json_int_t layer)
{
    const json_t *item = json_array_get(json_object_get(config, "no_rope_layers"), (size_t)layer);

    return json_is_integer(item) && json_integer_value(item) == 0;
}

/* Blocks without rotary positions are those with a window, if there is one. */
static void settle_smollm3(json_t *config)
{
    set_layers(config, "no_rope_layers", is_rotated, json_integer(1), json_integer(0));
    if (json_is_true(json_object_get(config, "use_sliding_window")) &&
        !is_null(config, "sliding_window"))
        set_layers(config, "layer_types", is_not_rotated, json_string("sliding_attention"),
                   json_string("full_attention"));
    else
        (void)json_object_del(config, "use_sliding_window");
    settle_window(config);
}

static bool is_local(const json_t *config, json_int_t layer)
{
    json_int_t every = number_at(config, "sliding_window_pattern", 6);

    return every < 1 || (layer + 1) % every != 0;
}

static bool is_default(const json_t *rope, const char *key)
{
    const char *type = json_string_value(json_object_get(rope, key));

    return type != NULL && strcmp(type, "default") == 0;
}

/* rope_parameters has an object for each kind of block: that of full_attention is moved to where other families have
 * theirs; of sliding_attention only the base is known. */
static void settle_nested_rope(json_t *config)
{
    json_t *nested = json_incref(json_object_get(config, "rope_parameters"));
    json_t *full = json_object_get(nested, "full_attention");
    json_t *local = json_object_get(nested, "sliding_attention"), *theta;
    const json_t *scaling = json_object_get(config, "rope_scaling");

    if (!json_is_object(nested) || (full == NULL && local == NULL)) {
        json_decref(nested);
        return;
    }
    full = json_is_object(full) ? json_deep_copy(full) : json_object();
    local = json_is_object(local) ? json_deep_copy(local) : json_object();
    if (json_is_object(scaling))
        json_object_update(full, (json_t *)scaling);
    theta = json_object_get(local, "rope_theta");
    if (theta != NULL)
        json_object_set(config, "rope_local_base_freq", theta);
    (void)json_object_del(local, "rope_theta");
    if (is_default(local, "rope_type"))
        (void)json_object_del(local, "rope_type");
    if (json_object_size(local) > 0)
        json_object_set(full, "sliding_attention", local); /* which is not known: refused */
    (void)json_object_del(config, "rope_scaling");
    json_object_set_new(config, "rope_parameters", full);
    json_decref(local);
    json_decref(nested);
}

static void settle_gemma3(json_t *config)
{
    set_layers(config, "layer_types", is_local, json_string("sliding_attention"),
               json_string("full_attention"));
    settle_nested_rope(config);
}

/* The class has no other name for the base of blocks with a window. */
static void nest_rope(json_t *config)
{
    json_t *full = json_incref(json_object_get(config, "rope_scaling"));

    full = full != NULL ? full : json_pack("{s:s}", "rope_type", "default");
    json_object_set(full, "rope_theta", json_object_get(config, "rope_theta"));
    json_object_set_new(config, "rope_parameters",
                        json_pack("{s:o, s:{s:s, s:O}}", "full_attention", full,
                                  "sliding_attention", "rope_type", "default", "rope_theta",
                                  json_object_get(config, "rope_local_base_freq")));
    (void)json_object_del(config, "rope_scaling");
    (void)json_object_del(config, "rope_theta");
    (void)json_object_del(config, "rope_local_base_freq");
}

/* --- the table */

#define FAMILY(type, class, fields, names)                                         \
    .model_type = type, .architecture = class, .prefix = "model.", .keys = fields, \
    .tensors = names, .buffers = buffers, .head = "/lm_head.weight",               \
    .embedding = "embed_tokens.weight"

const dt_published dt_published_llama[] = {
    /* an export without model.family uses the first that computes the model: llama, which allows any biases, comes
     * after qwen2 */
    {FAMILY("qwen2", "Qwen2ForCausalLM", qwen2, before), .settle = settle_window,
     .finish = finish_window},
    {FAMILY("qwen3", "Qwen3ForCausalLM", qwen3, before), .settle = settle_window,
     .finish = finish_window},
    {FAMILY("llama", "LlamaForCausalLM", llama, before)},
    {FAMILY("mistral", "MistralForCausalLM", mistral, before)},
    {FAMILY("phi3", "Phi3ForCausalLM", phi3, joined)},
    {FAMILY("granite", "GraniteForCausalLM", granite, before)},
    {FAMILY("olmo2", "Olmo2ForCausalLM", olmo2, after)},
    {FAMILY("olmo3", "Olmo3ForCausalLM", olmo3, after), .settle = settle_nested_rope,
     .finish = nest_rope},
    {FAMILY("smollm3", "SmolLM3ForCausalLM", smollm3, before), .settle = settle_smollm3,
     .finish = finish_window},
    {FAMILY("stablelm", "StableLmForCausalLM", stablelm, biased)},
    {FAMILY("gemma", "GemmaForCausalLM", gemma, before)},
    {FAMILY("gemma2", "Gemma2ForCausalLM", gemma2, both)},
    {FAMILY("gemma3_text", "Gemma3ForCausalLM", gemma3, both), .settle = settle_gemma3},
    {0},
};
