/* llama_published: maps Llama, Mistral, Qwen2 and Qwen3 of transformers (models/llama, mistral, qwen2, qwen3). */
#include "recipes/architecture/published.h"

extern const dt_published dt_published_llama[];

static const dt_published_word scalings[] = {
    {"default", "none"}, {"linear", "linear"}, {"llama3", "llama3"}, {0}};

/* clang-format off */ /* a row a field */

/* Newer versions keep all fields of rotary positions in one object, "rope_parameters": huggingface.c moves them here. */
#define ROPE                                                                                        \
    {.key = "rope_theta", .path = "model.rope_theta", .absent = "10000"},                             \
    {.key = "rope_scaling.rope_type", .also = {"rope_scaling.type"}, .path = "model.rope_scaling",    \
     .absent = "none", .words = scalings},                                                            \
    {.key = "rope_scaling.factor", .path = "model.rope_factor", .when = "linear llama3"},             \
    {.key = "rope_scaling.low_freq_factor", .path = "model.rope_low_freq_factor", .when = "llama3"},  \
    {.key = "rope_scaling.high_freq_factor", .path = "model.rope_high_freq_factor",                   \
     .when = "llama3"},                                                                               \
    {.key = "rope_scaling.original_max_position_embeddings", .path = "model.rope_original_tokens",    \
     .when = "llama3"}

/* kv_heads: 0 is num_attention_heads. head_dim: 0 is hidden_size / num_attention_heads. These are the defaults of
 * the class. */
#define COMMON(kv_heads_absent, head_dim_absent)                                                                       \
    {.key = "vocab_size",              .path = "model.vocab"},                                        \
    {.key = "hidden_size",             .path = "model.embed"},                                        \
    {.key = "num_hidden_layers",       .path = "model.layers"},                                       \
    {.key = "num_attention_heads",     .path = "model.heads"},                                        \
    {.key = "num_key_value_heads",     .path = "model.kv_heads", .absent = kv_heads_absent},          \
    {.key = "head_dim",                .path = "model.head_width", .absent = head_dim_absent},        \
    {.key = "intermediate_size",       .path = "model.ffn"},                                          \
    {.key = "rms_norm_eps",            .path = "model.norm_eps", .absent = "1e-6"},                   \
    {.key = "tie_word_embeddings",     .path = "model.tied", .absent = "false"},                      \
    {.key = "max_position_embeddings", .path = "batch.tokens", .least = true},                        \
    {.key = "hidden_act",              .must = "\"silu\""},                                           \
    ROPE

/* Only q, k and v have biases. */
#define PLAIN                                                                                         \
    {.path = "model.o_bias", .absent = "false"},                                                      \
    {.path = "model.mlp_bias", .absent = "false"}

static const dt_published_key llama[] = {
    COMMON("0", "0"),
    {.key = "attention_bias", .path = "model.qkv_bias", .absent = "false"},
    {.key = "attention_bias", .path = "model.o_bias",   .absent = "false"},
    {.key = "mlp_bias",       .path = "model.mlp_bias", .absent = "false"},
    {.path = "model.qk_norm", .absent = "false"},
    {0},
};

/* Without a sliding window; its length is then ignored. */
#define WINDOW                                                                                        \
    {.key = "use_sliding_window", .must = "false"},                                                   \
    {.key = "layer_types", .must = "\"full_attention\"", .each = true},                               \
    {.key = "sliding_window"},                                                                        \
    {.key = "max_window_layers"}

static const dt_published_key qwen2[] = {
    COMMON("0", "0"),
    {.path = "model.qkv_bias", .absent = "true"},
    PLAIN,
    {.path = "model.qk_norm",  .absent = "false"},
    WINDOW,
    {0},
};

static const dt_published_key mistral[] = {
    COMMON("8", "0"),
    {.path = "model.qkv_bias", .absent = "false"},
    PLAIN,
    {.path = "model.qk_norm",  .absent = "false"},
    /* the class has a default window of 4096 */
    {.key = "sliding_window", .must = "null", .needed = true},
    {0},
};

static const dt_published_key qwen3[] = {
    COMMON("0", "128"),
    {.path = "model.qkv_bias", .absent = "false"},
    PLAIN,
    {.path = "model.qk_norm",  .absent = "true"},
    {.key = "attention_bias", .must = "false"},
    WINDOW,
    {0},
};

static const dt_published_tensor tensors[] = {
    {.ours = "model.embed_tokens.weight", .theirs = "embed_tokens.weight"},
    {.ours = "model.layers.*.input_layernorm.weight", .theirs = "layers.*.input_layernorm.weight"},
    {.ours = "model.layers.*.self_attn.q_proj.weight", .theirs = "layers.*.self_attn.q_proj.weight"},
    {.ours = "model.layers.*.self_attn.k_proj.weight", .theirs = "layers.*.self_attn.k_proj.weight"},
    {.ours = "model.layers.*.self_attn.v_proj.weight", .theirs = "layers.*.self_attn.v_proj.weight"},
    {.ours = "model.layers.*.self_attn.q_proj.bias", .theirs = "layers.*.self_attn.q_proj.bias"},
    {.ours = "model.layers.*.self_attn.k_proj.bias", .theirs = "layers.*.self_attn.k_proj.bias"},
    {.ours = "model.layers.*.self_attn.v_proj.bias", .theirs = "layers.*.self_attn.v_proj.bias"},
    {.ours = "model.layers.*.self_attn.q_norm.weight", .theirs = "layers.*.self_attn.q_norm.weight"},
    {.ours = "model.layers.*.self_attn.k_norm.weight", .theirs = "layers.*.self_attn.k_norm.weight"},
    {.ours = "model.layers.*.self_attn.o_proj.weight", .theirs = "layers.*.self_attn.o_proj.weight"},
    {.ours = "model.layers.*.self_attn.o_proj.bias", .theirs = "layers.*.self_attn.o_proj.bias"},
    {.ours = "model.layers.*.post_attention_layernorm.weight", .theirs = "layers.*.post_attention_layernorm.weight"},
    {.ours = "model.layers.*.mlp.gate_proj.weight", .theirs = "layers.*.mlp.gate_proj.weight"},
    {.ours = "model.layers.*.mlp.up_proj.weight", .theirs = "layers.*.mlp.up_proj.weight"},
    {.ours = "model.layers.*.mlp.gate_proj.bias", .theirs = "layers.*.mlp.gate_proj.bias"},
    {.ours = "model.layers.*.mlp.up_proj.bias", .theirs = "layers.*.mlp.up_proj.bias"},
    {.ours = "model.layers.*.mlp.down_proj.weight", .theirs = "layers.*.mlp.down_proj.weight"},
    {.ours = "model.layers.*.mlp.down_proj.bias", .theirs = "layers.*.mlp.down_proj.bias"},
    {.ours = "model.norm.weight", .theirs = "norm.weight"},
    {.ours = "lm_head.weight", .theirs = "/lm_head.weight"},
    {0},
};

/* The frequencies, saved by older versions. */
static const char *const buffers[] = {"layers.*.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq", NULL};

#define FAMILY(type, class, fields)                                                                   \
    {.model_type = type, .architecture = class, .prefix = "model.", .keys = fields, .tensors = tensors, \
     .buffers = buffers, .head = "/lm_head.weight", .embedding = "embed_tokens.weight"}

const dt_published dt_published_llama[] = {
    /* an export uses the first matching family: llama, which allows any biases, comes after qwen2 */
    FAMILY("qwen2", "Qwen2ForCausalLM", qwen2),
    FAMILY("qwen3", "Qwen3ForCausalLM", qwen3),
    FAMILY("llama", "LlamaForCausalLM", llama),
    FAMILY("mistral", "MistralForCausalLM", mistral),
    {0},
};
/* clang-format on */
