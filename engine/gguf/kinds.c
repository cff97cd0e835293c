/* kinds: the tables of kinds of models in GGUF files. One more kind is a row of `kinds` and its tables. */
#include <math.h>
#include <string.h>

#include "engine/gguf/gguf_int.h"

#define NONE NAN

/* --- tables */

static const dt_gguf_tensor_row gpt2_tensors[] = {
    {"wte", "token_embd", DT_GGUF_AS_IS, false},
    {"wpe", "position_embd", DT_GGUF_AS_IS, true},
    {"ln_f", "output_norm", DT_GGUF_AS_IS, false},
    {"lm_head", "output", DT_GGUF_AS_IS, false},
    {"h.*.ln_1", "blk.*.attn_norm", DT_GGUF_AS_IS, false},
    {"h.*.ln_2", "blk.*.ffn_norm", DT_GGUF_AS_IS, false},
    {"h.*.attn.c_attn", "blk.*.attn_qkv", DT_GGUF_TRANSPOSED, false},
    {"h.*.attn.c_proj", "blk.*.attn_output", DT_GGUF_TRANSPOSED, false},
    {"h.*.mlp.c_fc", "blk.*.ffn_up", DT_GGUF_TRANSPOSED, false},
    {"h.*.mlp.c_proj", "blk.*.ffn_down", DT_GGUF_TRANSPOSED, false},
    {0},
};

static const dt_gguf_key_row gpt2_keys[] = {
    {"n_positions", "context_length", DT_GGUF_U32, NONE},
    {"n_embd", "embedding_length", DT_GGUF_U32, NONE},
    {"n_layer", "block_count", DT_GGUF_U32, NONE},
    {"n_head", "attention.head_count", DT_GGUF_U32, NONE},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", DT_GGUF_FLOAT, 1e-5},
    {0},
};

/* clang-format off */ /* a row a tensor or a key */

#define AS_IS(theirs, ours) {theirs, ours, DT_GGUF_AS_IS, false}
#define NORM(turn, theirs, ours) {theirs, ours, turn, false}
#define ENDS(norm)                                                                                  \
    AS_IS("embed_tokens", "token_embd"), NORM(norm, "norm", "output_norm"), AS_IS("lm_head", "output")
#define OUTPUTS                                                                                     \
    AS_IS("layers.*.self_attn.o_proj", "blk.*.attn_output"),                                        \
    AS_IS("layers.*.mlp.down_proj", "blk.*.ffn_down")
/* Some architectures rotate neighbouring rows, others the halves of a head. */
#define MATRICES(norm, query, key)                                                                  \
    OUTPUTS, {"layers.*.self_attn.q_proj", "blk.*.attn_q", query, false},                           \
    {"layers.*.self_attn.k_proj", "blk.*.attn_k", key, false},                                      \
    AS_IS("layers.*.self_attn.v_proj", "blk.*.attn_v"),                                             \
    NORM(norm, "layers.*.self_attn.q_norm", "blk.*.attn_q_norm"),                                   \
    NORM(norm, "layers.*.self_attn.k_norm", "blk.*.attn_k_norm"),                                   \
    AS_IS("layers.*.mlp.gate_proj", "blk.*.ffn_gate"), AS_IS("layers.*.mlp.up_proj", "blk.*.ffn_up")
#define HALVES(norm) MATRICES(norm, DT_GGUF_AS_IS, DT_GGUF_AS_IS)
#define NORMS_BEFORE                                                                                \
    AS_IS("layers.*.input_layernorm", "blk.*.attn_norm"),                                           \
    AS_IS("layers.*.post_attention_layernorm", "blk.*.ffn_norm")
#define NORMS_AFTER(norm)                                                                           \
    NORM(norm, "layers.*.post_attention_layernorm", "blk.*.post_attention_norm"),                   \
    NORM(norm, "layers.*.post_feedforward_layernorm", "blk.*.post_ffw_norm")

static const dt_gguf_tensor_row pair_tensors[] = {
    ENDS(DT_GGUF_AS_IS), NORMS_BEFORE,
    MATRICES(DT_GGUF_AS_IS, DT_GGUF_QUERY_PAIRS, DT_GGUF_KEY_PAIRS), {0}};
static const dt_gguf_tensor_row half_tensors[] = {
    ENDS(DT_GGUF_AS_IS), NORMS_BEFORE, HALVES(DT_GGUF_AS_IS), {0}};
static const dt_gguf_tensor_row joined_tensors[] = {
    ENDS(DT_GGUF_AS_IS), NORMS_BEFORE, OUTPUTS, AS_IS("layers.*.self_attn.qkv_proj", "blk.*.attn_qkv"),
    AS_IS("layers.*.mlp.gate_up_proj", "blk.*.ffn_up"), {0}};
static const dt_gguf_tensor_row after_tensors[] = {
    ENDS(DT_GGUF_AS_IS), NORMS_AFTER(DT_GGUF_AS_IS), HALVES(DT_GGUF_AS_IS), {0}};
static const dt_gguf_tensor_row gemma1_tensors[] = {
    ENDS(DT_GGUF_PLUS_ONE), HALVES(DT_GGUF_PLUS_ONE),
    NORM(DT_GGUF_PLUS_ONE, "layers.*.input_layernorm", "blk.*.attn_norm"),
    NORM(DT_GGUF_PLUS_ONE, "layers.*.post_attention_layernorm", "blk.*.ffn_norm"), {0}};
static const dt_gguf_tensor_row gemma_tensors[] = {
    ENDS(DT_GGUF_PLUS_ONE), NORMS_AFTER(DT_GGUF_PLUS_ONE), HALVES(DT_GGUF_PLUS_ONE),
    NORM(DT_GGUF_PLUS_ONE, "layers.*.input_layernorm", "blk.*.attn_norm"),
    NORM(DT_GGUF_PLUS_ONE, "layers.*.pre_feedforward_layernorm", "blk.*.ffn_norm"), {0}};

/* eps: the key of the norms' epsilon, and its key in the file. */
#define KEYS_WITH(eps, in_file)                                                                     \
    {"max_position_embeddings", "context_length", DT_GGUF_U32, NONE},                               \
    {"hidden_size", "embedding_length", DT_GGUF_U32, NONE},                                         \
    {"num_hidden_layers", "block_count", DT_GGUF_U32, NONE},                                        \
    {"intermediate_size", "feed_forward_length", DT_GGUF_U32, NONE},                                \
    {"num_attention_heads", "attention.head_count", DT_GGUF_U32, NONE},                             \
    {"num_key_value_heads", "attention.head_count_kv", DT_GGUF_U32, NONE},                          \
    {"head_dim", "attention.key_length", DT_GGUF_U32, NONE},                                        \
    {"head_dim", "attention.value_length", DT_GGUF_U32, NONE},                                      \
    {"vocab_size", "vocab_size", DT_GGUF_U32, NONE}, {eps, in_file, DT_GGUF_FLOAT, 1e-6}
#define KEYS KEYS_WITH("rms_norm_eps", "attention.layer_norm_rms_epsilon")

static const dt_gguf_key_row keys[] = {KEYS, {0}};
static const dt_gguf_key_row stablelm_keys[] = {
    KEYS_WITH("layer_norm_eps", "attention.layer_norm_epsilon"), {0}};
static const dt_gguf_key_row granite_keys[] = {
    KEYS, {"embedding_multiplier", "embedding_scale", DT_GGUF_FLOAT, 1},
    {"residual_multiplier", "residual_scale", DT_GGUF_FLOAT, 1},
    {"attention_multiplier", "attention.scale", DT_GGUF_FLOAT, 1},
    {"logits_scaling", "logit_scale", DT_GGUF_FLOAT, 1}, {0}};
static const dt_gguf_key_row gemma_keys[] = {
    KEYS, {"attn_logit_softcapping", "attn_logit_softcapping", DT_GGUF_FLOAT, NONE},
    {"final_logit_softcapping", "final_logit_softcapping", DT_GGUF_FLOAT, NONE},
    {"rope_local_base_freq", "rope.freq_base_swa", DT_GGUF_FLOAT, NONE}, {0}};

#define SILU {"hidden_act", "silu|swish"}
#define NO_BIAS {"attention_bias", "false"}
static const dt_gguf_need_row gpt2_needs[] = {
    {"activation_function", "gelu_new|gelu_pytorch_tanh"}, {0}};
static const dt_gguf_need_row silu_needs[] = {SILU, {0}};
static const dt_gguf_need_row unbiased_needs[] = {SILU, NO_BIAS, {"mlp_bias", "false"}, {0}};
static const dt_gguf_need_row stablelm_needs[] = {
    SILU, {"use_parallel_residual", "false"}, {"qk_layernorm", "false"}, {0}};
#define GEMMA NO_BIAS, {"hidden_activation", "gelu_pytorch_tanh"}
static const dt_gguf_need_row gemma1_needs[] = {
    NO_BIAS, {"hidden_act", "gelu_pytorch_tanh|gelu|gelu_new"}, {"tie_word_embeddings", "true"}, {0}};
static const dt_gguf_need_row gemma2_needs[] = {
    GEMMA, {"tie_word_embeddings", "true"}, {"attn_logit_softcapping", "a number"},
    {"final_logit_softcapping", "a number"}, {0}};
static const dt_gguf_need_row gemma3_needs[] = {GEMMA, {0}};
/* clang-format on */

static int64_t gpt2_feed_forward(const json_t *config)
{
    const json_t *inner = json_object_get(config, "n_inner");

    return json_is_integer(inner) ? json_integer_value(inner)
                                  : 4 * json_integer_value(json_object_get(config, "n_embd"));
}

/* What llama.cpp computes: the files of its folder src/models, and llama_model_rope_type. */
#define ALL_ROPES  "default linear llama3 yarn longrope"
#define SOME_ROPES "default linear yarn"
#define KIND(type, name, tensor_rows, key_rows, need_rows, rope_types)                    \
    .model_type = type, .architecture = name, .prefix = "model.", .tensors = tensor_rows, \
    .keys = key_rows, .needs = need_rows, .ropes = rope_types

static const dt_gguf_kind kinds[] = {
    {.model_type = "gpt2",
     .architecture = "gpt2",
     .prefix = "transformer.",
     .tensors = gpt2_tensors,
     .keys = gpt2_keys,
     .needs = gpt2_needs,
     .feed_forward = gpt2_feed_forward},
    {KIND("llama", "llama", pair_tensors, keys, silu_needs, ALL_ROPES)},
    {KIND("mistral", "llama", pair_tensors, keys, silu_needs, ALL_ROPES)},
    {KIND("qwen2", "qwen2", half_tensors, keys, silu_needs, SOME_ROPES),
     .head_width_derived = true},
    {KIND("qwen3", "qwen3", half_tensors, keys, unbiased_needs, SOME_ROPES)},
    {KIND("phi3", "phi3", joined_tensors, keys, silu_needs, "default longrope"),
     .head_width_derived = true},
    {KIND("granite", "granite", pair_tensors, granite_keys, silu_needs, ALL_ROPES)},
    {KIND("olmo2", "olmo2", after_tensors, keys, unbiased_needs, SOME_ROPES), .own_head = true,
     .head_width_derived = true},
    {KIND("olmo3", "olmo2", after_tensors, keys, unbiased_needs, SOME_ROPES), .own_head = true,
     .head_width_derived = true, .windows = DT_GGUF_WINDOWS_MAYBE, .window_pattern = 4,
     .same_base = true},
    {KIND("smollm3", "smollm3", pair_tensors, keys, unbiased_needs, SOME_ROPES),
     .unrotated_pattern = 4},
    {KIND("stablelm", "stablelm", half_tensors, stablelm_keys, stablelm_needs, SOME_ROPES),
     .own_head = true, .head_width_derived = true},
    {KIND("gemma", "gemma", gemma1_tensors, keys, gemma1_needs, SOME_ROPES)},
    {KIND("gemma2", "gemma2", gemma_tensors, gemma_keys, gemma2_needs, SOME_ROPES),
     .windows = DT_GGUF_WINDOWS_ALWAYS, .window_pattern = 2, .derived_scale = 46},
    /* yarn would also scale the blocks with a window */
    {KIND("gemma3_text", "gemma3", gemma_tensors, gemma_keys, gemma3_needs, "default linear"),
     .windows = DT_GGUF_WINDOWS_MAYBE, .window_pattern = 6, .derived_scale = 62},
};

/* --- lookup */

dt_status dt_gguf_find_kind(const dt_gguf_kind **out, const json_t *config, dt_error *err)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    dt_strbuf known;

    for (size_t i = 0; type != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].model_type, type) == 0) {
            *out = &kinds[i];
            return DT_OK;
        }
    dt_strbuf_init(&known);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        dt_strbuf_add_fmt(&known, "%s%s", i > 0 ? ", " : "", kinds[i].model_type);
    DT_FAIL(err, DT_ERR_RECIPE, "unsupported model type '%.40s' (expected %s)",
            type != NULL ? type : "", known.data);
    dt_strbuf_release(&known);
    return DT_ERR_RECIPE;
}

/* Whether `name` matches the pattern and then ends or continues with a dot; *block: what '*' stands for. */
static bool matches(const char *pattern, const char *name, const char **block, int *block_length,
                    const char **rest)
{
    while (*pattern != '\0') {
        if (*pattern == '*') {
            *block = name;
            *block_length = (int)strspn(name, "0123456789");
            if (*block_length == 0)
                return false;
            name += *block_length;
            pattern++;
        } else if (*pattern++ != *name++) {
            return false;
        }
    }
    *rest = name;
    return strcmp(name, ".weight") == 0 || strcmp(name, ".bias") == 0;
}

const dt_gguf_tensor_row *dt_gguf_find_tensor(const char **name, const dt_gguf_kind *kind,
                                              const char *theirs, dt_arena *arena)
{
    const char *block = "", *rest = "", *star;
    int length = 0;

    if (strncmp(theirs, kind->prefix, strlen(kind->prefix)) == 0)
        theirs += strlen(kind->prefix);
    for (const dt_gguf_tensor_row *row = kind->tensors; row->theirs != NULL; row++) {
        if (!matches(row->theirs, theirs, &block, &length, &rest))
            continue;
        star = strchr(row->ours, '*');
        *name = star == NULL ? dt_arena_printf(arena, "%s%s", row->ours, rest)
                             : dt_arena_printf(arena, "%.*s%.*s%s%s", (int)(star - row->ours),
                                               row->ours, length, block, star + 1, rest);
        return row;
    }
    return NULL;
}
