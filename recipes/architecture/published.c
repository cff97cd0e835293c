/* published: the config.json fields and tensor names of each family of Hugging Face's transformers. */
#include "recipes/architecture/published.h"

/* --- fields of any model */

/* Names, file types, sampling, return values of the Python classes: nothing about the network.
 * Dropout comes from the recipe (model.dropout), initial values from the files. */
const char *const dt_published_ignored[] = {
    "_attn_implementation_autoset",
    "_name_or_path",
    "_num_labels",
    "architectures",
    "attention_dropout",
    "attn_implementation",
    "attn_pdrop",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "embd_pdrop",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "is_decoder",
    "label2id",
    "length_penalty",
    "max_length",
    "min_length",
    "model_type",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_scores",
    "pad_token_id",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "use_bfloat16",
    "use_cache",
    NULL,
};

const dt_published_key dt_published_common[] = {
    {.key = "add_cross_attention", .must = "false"},
    {.key = "cross_attention_hidden_size", .must = "null"},
    {.key = "is_encoder_decoder", .must = "false"},
    {.key = "pruned_heads", .must = "{}"},
    {0},
};

/* --- GPT-2 (models/gpt2). Its matrices are Conv1D, stored as (in, out). */

extern const dt_published dt_published_gpt2[];

/* gelu_new and gelu_pytorch_tanh are the same function. */
static const dt_published_word activations[] = {
    {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"},
    {"gelu", "gelu"},          {"relu", "relu"},
    {"tanh", "tanh"},          {0},
};

/* clang-format off */ /* a row a field */
static const dt_published_key keys[] = {
    {.key = "vocab_size",          .path = "model.vocab"},
    {.key = "n_positions",         .path = "batch.tokens", .at_most = true},
    {.key = "n_embd",              .path = "model.embed"},
    {.key = "n_layer",             .path = "model.layers"},
    {.key = "n_head",              .path = "model.heads"},
    {.key = "activation_function", .path = "model.activation", .absent = "gelu_tanh", .words = activations},
    {.key = "tie_word_embeddings", .path = "model.tied", .absent = "true"},
    {.path = "model.positions",       .absent = "learned"},
    {.path = "model.scale_embedding", .absent = "false"},
    {.key = "n_inner",             .path = "model.ffn", .absent = "0"},
    {.key = "layer_norm_epsilon",  .path = "model.norm_eps", .absent = "1e-5"},
    {.key = "scale_attn_weights",  .must = "true"},
    {.key = "scale_attn_by_inverse_layer_idx", .must = "false"},
    /* changes only where half precision is scaled */
    {.key = "reorder_and_upcast_attn"},
    /* repeats n_positions; not read */
    {.key = "n_ctx"},
    /* for a sequence summary head, which language models do not have */
    {.key = "summary_activation"},
    {.key = "summary_first_dropout"},
    {.key = "summary_proj_to_labels"},
    {.key = "summary_type"},
    {.key = "summary_use_proj"},
    {0},
};

static const dt_published_tensor gpt2_tensors[] = {
    {.ours = "wte.weight", .theirs = "wte.weight"},
    {.ours = "wpe.weight", .theirs = "wpe.weight", .longer = true},
    {.ours = "h.*.ln_1.weight", .theirs = "h.*.ln_1.weight"},
    {.ours = "h.*.ln_1.bias", .theirs = "h.*.ln_1.bias"},
    {.ours = "h.*.attn.c_attn.weight", .theirs = "h.*.attn.c_attn.weight", .transposed = true},
    {.ours = "h.*.attn.c_attn.bias", .theirs = "h.*.attn.c_attn.bias"},
    {.ours = "h.*.attn.c_proj.weight", .theirs = "h.*.attn.c_proj.weight", .transposed = true},
    {.ours = "h.*.attn.c_proj.bias", .theirs = "h.*.attn.c_proj.bias"},
    {.ours = "h.*.ln_2.weight", .theirs = "h.*.ln_2.weight"},
    {.ours = "h.*.ln_2.bias", .theirs = "h.*.ln_2.bias"},
    {.ours = "h.*.mlp.c_fc.weight", .theirs = "h.*.mlp.c_fc.weight", .transposed = true},
    {.ours = "h.*.mlp.c_fc.bias", .theirs = "h.*.mlp.c_fc.bias"},
    {.ours = "h.*.mlp.c_proj.weight", .theirs = "h.*.mlp.c_proj.weight", .transposed = true},
    {.ours = "h.*.mlp.c_proj.bias", .theirs = "h.*.mlp.c_proj.bias"},
    {.ours = "ln_f.weight", .theirs = "ln_f.weight"},
    {.ours = "ln_f.bias", .theirs = "ln_f.bias"},
    {.ours = "lm_head.weight", .theirs = "/lm_head.weight"},
    {0},
};
/* clang-format on */

/* The causal mask, as older versions saved it. */
static const char *const gpt2_buffers[] = {"h.*.attn.bias", "h.*.attn.masked_bias", NULL};

const dt_published dt_published_gpt2[] = {
    {.model_type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .prefix = "transformer.",
     .keys = keys,
     .tensors = gpt2_tensors,
     .buffers = gpt2_buffers,
     .head = "/lm_head.weight",
     .embedding = "wte.weight"},
    {0},
};

/* --- Llama, Mistral, Qwen2 and Qwen3 (models/llama, mistral, qwen2, qwen3) */

extern const dt_published dt_published_llama[];

static const dt_published_word scalings[] = {
    {"default", "none"}, {"linear", "linear"}, {"llama3", "llama3"}, {0}};

/* clang-format off */ /* a row a field */

/* Newer versions keep all fields of rotary positions in one object, "rope_parameters": huggingface.c moves
 * them here. */
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

static const dt_published_tensor llama_tensors[] = {
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
static const char *const llama_buffers[] = {"layers.*.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq", NULL};

#define FAMILY(type, class, fields)                                                                   \
    {.model_type = type, .architecture = class, .prefix = "model.", .keys = fields, .tensors = llama_tensors, \
     .buffers = llama_buffers, .head = "/lm_head.weight", .embedding = "embed_tokens.weight"}

const dt_published dt_published_llama[] = {
    /* an export uses the first matching family: llama, which allows any biases, comes after qwen2 */
    FAMILY("qwen2", "Qwen2ForCausalLM", qwen2),
    FAMILY("qwen3", "Qwen3ForCausalLM", qwen3),
    FAMILY("llama", "LlamaForCausalLM", llama),
    FAMILY("mistral", "MistralForCausalLM", mistral),
    {0},
};
/* clang-format on */
