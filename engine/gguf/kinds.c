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

#define LLAMA_TENSORS(query, key)                                                      \
    {"embed_tokens", "token_embd", DT_GGUF_AS_IS, false},                              \
        {"norm", "output_norm", DT_GGUF_AS_IS, false},                                 \
        {"lm_head", "output", DT_GGUF_AS_IS, false},                                   \
        {"layers.*.input_layernorm", "blk.*.attn_norm", DT_GGUF_AS_IS, false},         \
        {"layers.*.post_attention_layernorm", "blk.*.ffn_norm", DT_GGUF_AS_IS, false}, \
        {"layers.*.self_attn.q_proj", "blk.*.attn_q", query, false},                   \
        {"layers.*.self_attn.k_proj", "blk.*.attn_k", key, false},                     \
        {"layers.*.self_attn.v_proj", "blk.*.attn_v", DT_GGUF_AS_IS, false},           \
        {"layers.*.self_attn.o_proj", "blk.*.attn_output", DT_GGUF_AS_IS, false},      \
        {"layers.*.self_attn.q_norm", "blk.*.attn_q_norm", DT_GGUF_AS_IS, false},      \
        {"layers.*.self_attn.k_norm", "blk.*.attn_k_norm", DT_GGUF_AS_IS, false},      \
        {"layers.*.mlp.gate_proj", "blk.*.ffn_gate", DT_GGUF_AS_IS, false},            \
        {"layers.*.mlp.up_proj", "blk.*.ffn_up", DT_GGUF_AS_IS, false},                \
    {                                                                                  \
        "layers.*.mlp.down_proj", "blk.*.ffn_down", DT_GGUF_AS_IS, false               \
    }

/* llama.cpp rotates neighbouring rows for this architecture, and halves of a head for those of Qwen. */
static const dt_gguf_tensor_row llama_tensors[] = {
    LLAMA_TENSORS(DT_GGUF_QUERY_PAIRS, DT_GGUF_KEY_PAIRS), {0}};
static const dt_gguf_tensor_row qwen_tensors[] = {LLAMA_TENSORS(DT_GGUF_AS_IS, DT_GGUF_AS_IS), {0}};

static const dt_gguf_key_row llama_keys[] = {
    {"max_position_embeddings", "context_length", DT_GGUF_U32, NONE},
    {"hidden_size", "embedding_length", DT_GGUF_U32, NONE},
    {"num_hidden_layers", "block_count", DT_GGUF_U32, NONE},
    {"intermediate_size", "feed_forward_length", DT_GGUF_U32, NONE},
    {"num_attention_heads", "attention.head_count", DT_GGUF_U32, NONE},
    {"num_key_value_heads", "attention.head_count_kv", DT_GGUF_U32, NONE},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", DT_GGUF_FLOAT, 1e-6},
    {"rope_theta", "rope.freq_base", DT_GGUF_FLOAT, NONE},
    {"rope_parameters.rope_theta", "rope.freq_base", DT_GGUF_FLOAT, NONE},
    {"head_dim", "attention.key_length", DT_GGUF_U32, NONE},
    {"head_dim", "attention.value_length", DT_GGUF_U32, NONE},
    {"head_dim", "rope.dimension_count", DT_GGUF_U32, NONE},
    {"vocab_size", "vocab_size", DT_GGUF_U32, NONE},
    {0},
};

static int64_t gpt2_feed_forward(const json_t *config)
{
    const json_t *inner = json_object_get(config, "n_inner");

    return json_is_integer(inner) ? json_integer_value(inner)
                                  : 4 * json_integer_value(json_object_get(config, "n_embd"));
}

static const dt_gguf_kind kinds[] = {
    {"gpt2", "gpt2", "transformer.", gpt2_tensors, gpt2_keys, gpt2_feed_forward},
    {"llama", "llama", "model.", llama_tensors, llama_keys, NULL},
    {"qwen2", "qwen2", "model.", qwen_tensors, llama_keys, NULL},
    {"qwen3", "qwen3", "model.", qwen_tensors, llama_keys, NULL},
};

/* --- what the tables say */

const json_t *dt_gguf_config_value(const json_t *config, const char *path)
{
    const char *dot = strchr(path, '.');
    char first[64];

    if (dot == NULL)
        return json_object_get(config, path);
    snprintf(first, sizeof(first), "%.*s", (int)(dot - path), path);
    return dt_gguf_config_value(json_object_get(config, first), dot + 1);
}

const json_t *dt_gguf_rope_value(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(json_object_get(config, "rope_scaling"), key);

    return value != NULL ? value : json_object_get(json_object_get(config, "rope_parameters"), key);
}

const char *dt_gguf_rope_type(const json_t *config)
{
    const char *type = json_string_value(dt_gguf_rope_value(config, "rope_type"));

    if (type == NULL)
        type = json_string_value(dt_gguf_rope_value(config, "type"));
    return type != NULL ? type : "default";
}

/* Settings that change what the model computes, and that no key above has. */
static dt_status check_settings(const json_t *config, dt_error *err)
{
    static const char *const acts[] = {"activation_function", "hidden_act"};
    const char *type = dt_gguf_rope_type(config), *act;
    const json_t *layer;
    size_t i;

    if (strcmp(type, "default") != 0 && strcmp(type, "linear") != 0 && strcmp(type, "llama3") != 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the rope type is '%s': --to gguf can write default, linear and llama3",
                       type);
    for (i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        act = json_string_value(json_object_get(config, acts[i]));
        if (act != NULL && strcmp(act, i == 0 ? "gelu_new" : "silu") != 0)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s' is '%s', and a GGUF file of this kind means '%s'", acts[i], act,
                           i == 0 ? "gelu_new" : "silu");
    }
    if (strcmp(json_string_value(json_object_get(config, "model_type")), "qwen3") == 0 &&
        json_is_true(json_object_get(config, "attention_bias")))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'attention_bias' is true, and GGUF files of qwen3 have no biases");
    json_array_foreach((json_t *)json_object_get(config, "layer_types"), i, layer)
        if (json_string_value(layer) == NULL ||
            strcmp(json_string_value(layer), "full_attention") != 0)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'layer_types' has others than 'full_attention': --to gguf cannot write "
                           "them");
    if (json_is_true(json_object_get(config, "use_sliding_window")))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'use_sliding_window' is true: --to gguf cannot write it");
    return DT_OK;
}

dt_status dt_gguf_find_kind(const dt_gguf_kind **out, const json_t *config, dt_error *err)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    dt_strbuf known;

    for (size_t i = 0; type != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].model_type, type) == 0) {
            *out = &kinds[i];
            return check_settings(config, err);
        }
    dt_strbuf_init(&known);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        dt_strbuf_add_fmt(&known, "%s%s", i > 0 ? ", " : "", kinds[i].model_type);
    DT_FAIL(err, DT_ERR_RECIPE, "--to gguf cannot write models of type '%.40s' (expected %s)",
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
