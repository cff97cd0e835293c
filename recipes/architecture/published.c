/* published: the config.json fields and tensor names of GPT-2, and the fields of any model of Hugging Face's
 * transformers. */
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
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "cache_implementation",
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
