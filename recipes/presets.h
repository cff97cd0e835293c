/* presets: published models by name: values for fields that the recipe leaves out. */
#ifndef DT_RECIPES_PRESETS_H
#define DT_RECIPES_PRESETS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The one list: a name, and the values it stands for, as in a recipe. The choices of model.preset
 * (fields.c) and the table below are made of it.
 * gpt2-*: Radford et al. 2019, table 2, with the head counts of the published weights.
 * transformer_lm_gpt2_small: fairseq's architecture of that name, as large as gpt2-medium. */
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
           {"model.tied", "false"})
#define DT_PRESET_GPT2(layers, heads, embed)      \
    {"model.layers", layers},                     \
    {"model.heads", heads},                       \
    {"model.embed", embed},                       \
    {"model.activation", "gelu_tanh"}
/* clang-format on */

#define DT_PRESET_VALUES 9

typedef struct dt_preset_value {
    const char *path, *text; /* as in a recipe; a NULL path ends the list */
} dt_preset_value;

typedef struct dt_preset {
    const char *name;
    dt_preset_value values[DT_PRESET_VALUES];
} dt_preset;

extern const dt_preset dt_presets[];
extern const size_t dt_presets_count;

/* NULL where there is none of that name. */
const dt_preset *dt_preset_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
