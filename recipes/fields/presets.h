/* presets: defines published models by name, as values for fields that a recipe leaves out. */
#ifndef DT_RECIPES_FIELDS_PRESETS_H
#define DT_RECIPES_FIELDS_PRESETS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The list of presets: a name and its values, as in a recipe. The choices of model.preset
 * (fields.c) and the table below are generated from it.
 * No preset sets the vocabulary, which comes from the data.
 * gpt2-*: Radford et al. 2019, table 2, with the head counts of the published weights.
 * transformer_lm_gpt2_small: fairseq's architecture of that name, as large as gpt2-medium.
 * transformer_*: fairseq's architectures of encoder and decoder for translation; iwslt_de_en, wmt_en_de
 * (base) and vaswani_wmt_en_de_big (big). Embeddings are not shared there unless a run asks for it.
 * All others: the config.json of the published weights; tied or not as there. */
/* clang-format off */
#define DT_PRESETS(PRESET)                        \
    PRESET("gpt2-small", DT_PRESET_GPT2("12", "12", "768"))    \
    PRESET("gpt2-medium", DT_PRESET_GPT2("24", "16", "1024"))  \
    PRESET("gpt2-large", DT_PRESET_GPT2("36", "20", "1280"))   \
    PRESET("gpt2-xl", DT_PRESET_GPT2("48", "25", "1600"))      \
    PRESET("transformer_lm_gpt2_small",           \
           {"model.layers", "24"},                \
           {"model.heads", "16"},                 \
           {"model.embed", "1024"},               \
           {"model.dropout", "0.1"},              \
           {"model.attention_dropout", "0.1"},    \
           {"model.activation", "gelu"},          \
           {"model.positions", "sinusoidal"},     \
           {"model.scale_embedding", "true"},     \
           {"model.tied", "false"})               \
    PRESET("smollm2-135m", DT_PRESET_LLAMA("30", "9", "3", "576", "1536", "100000"))      \
    PRESET("smollm2-360m", DT_PRESET_LLAMA("32", "15", "5", "960", "2560", "100000"))     \
    PRESET("tinyllama-1.1b", DT_PRESET_LLAMA("22", "32", "4", "2048", "5632", "10000"),   \
           {"model.tied", "false"})               \
    PRESET("llama3.2-1b", DT_PRESET_LLAMA("16", "32", "8", "2048", "8192", "500000"),     \
           {"model.rope_scaling", "llama3"},      \
           {"model.rope_factor", "32"},           \
           {"model.rope_low_freq_factor", "1"},   \
           {"model.rope_high_freq_factor", "4"},  \
           {"model.rope_original_tokens", "8192"})\
    PRESET("llama3-8b", DT_PRESET_LLAMA("32", "32", "8", "4096", "14336", "500000"),      \
           {"model.tied", "false"})               \
    PRESET("qwen2.5-0.5b", DT_PRESET_LLAMA("24", "14", "2", "896", "4864", "1000000"),    \
           {"model.norm_eps", "1e-6"},            \
           {"model.qkv_bias", "true"})            \
    PRESET("qwen3-0.6b", DT_PRESET_LLAMA("28", "16", "8", "1024", "3072", "1000000"),     \
           {"model.head_width", "128"},           \
           {"model.norm_eps", "1e-6"},            \
           {"model.qk_norm", "true"})             \
    PRESET("qwen3-8b", DT_PRESET_LLAMA("36", "32", "8", "4096", "12288", "1000000"),      \
           {"model.head_width", "128"},           \
           {"model.norm_eps", "1e-6"},            \
           {"model.qk_norm", "true"},             \
           {"model.tied", "false"})               \
    PRESET("transformer_iwslt_de_en", DT_PRESET_TRANSFORMER("512", "1024", "4", "0.1"))   \
    PRESET("transformer_base", DT_PRESET_TRANSFORMER("512", "2048", "8", "0.1"))          \
    PRESET("transformer_big", DT_PRESET_TRANSFORMER("1024", "4096", "16", "0.3"))
#define DT_PRESET_TRANSFORMER(embed, ffn, heads, dropout) \
    {"model.kind", "transformer"},                \
    {"model.layers", "6"},                        \
    {"model.decoder_layers", "6"},                \
    {"model.heads", heads},                       \
    {"model.embed", embed},                       \
    {"model.ffn", ffn},                           \
    {"model.dropout", dropout},                   \
    {"model.activation", "relu"},                 \
    {"model.positions", "sinusoidal"},            \
    {"model.scale_embedding", "true"},            \
    {"model.tied", "false"}
#define DT_PRESET_LLAMA(layers, heads, kv_heads, embed, ffn, theta) \
    {"model.kind", "llama"},                      \
    {"model.layers", layers},                     \
    {"model.heads", heads},                       \
    {"model.kv_heads", kv_heads},                 \
    {"model.embed", embed},                       \
    {"model.ffn", ffn},                           \
    {"model.rope_theta", theta}
#define DT_PRESET_GPT2(layers, heads, embed)      \
    {"model.layers", layers},                     \
    {"model.heads", heads},                       \
    {"model.embed", embed},                       \
    {"model.activation", "gelu_tanh"}
/* clang-format on */

#define DT_PRESET_VALUES 12

typedef struct dt_preset_value {
    const char *path, *text; /* as in a recipe; a NULL path ends the list */
} dt_preset_value;

typedef struct dt_preset {
    const char *name;
    dt_preset_value values[DT_PRESET_VALUES];
} dt_preset;

extern const dt_preset dt_presets[];
extern const size_t dt_presets_count;

/* Returns NULL for an unknown name. */
const dt_preset *dt_preset_find(const char *name);
/* Returns the preset's value of a field; NULL if it has none. */
const char *dt_preset_value_of(const dt_preset *preset, const char *path);

#ifdef __cplusplus
}
#endif
#endif
