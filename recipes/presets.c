#include "recipes/presets.h"

#include <string.h>

#include "base/banned.h"

#define GPT2(l, h, c)                                                \
    {                                                                \
        {"model.layers", l}, {"model.heads", h}, {"model.embed", c}, \
            {"model.activation", "gelu_tanh"},                       \
        {                                                            \
            NULL, NULL                                               \
        }                                                            \
    }

const dt_preset dt_presets[] = {
    /* Radford et al. 2019, table 2, with the head counts of the published weights. */
    {"gpt2-small", GPT2("12", "12", "768")},
    {"gpt2-medium", GPT2("24", "16", "1024")},
    {"gpt2-large", GPT2("36", "20", "1280")},
    {"gpt2-xl", GPT2("48", "25", "1600")},
    /* fairseq's architecture of that name, as large as gpt2-medium. */
    {"transformer_lm_gpt2_small",
     {{"model.layers", "24"},
      {"model.heads", "16"},
      {"model.embed", "1024"},
      {"model.dropout", "0.1"},
      {"model.attention_dropout", "0.1"},
      {"model.activation", "gelu"},
      {"model.positions", "sinusoidal"},
      {"model.scale_embedding", "true"},
      {"model.tied", "false"}}},
};
const size_t dt_presets_count = sizeof(dt_presets) / sizeof(dt_presets[0]);

const dt_preset *dt_preset_find(const char *name)
{
    for (size_t i = 0; i < dt_presets_count; i++)
        if (strcmp(dt_presets[i].name, name) == 0)
            return &dt_presets[i];
    return NULL;
}
