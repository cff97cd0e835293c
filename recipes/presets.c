#include "recipes/presets.h"

#include <string.h>

#include "base/banned.h"

/* Radford et al. 2019, table 2, with the head counts of the published weights. */
const dt_preset dt_presets[] = {
    {.name = "gpt2-small", .layers = 12, .heads = 12, .embed = 768},
    {.name = "gpt2-medium", .layers = 24, .heads = 16, .embed = 1024},
    {.name = "gpt2-large", .layers = 36, .heads = 20, .embed = 1280},
    {.name = "gpt2-xl", .layers = 48, .heads = 25, .embed = 1600},
};
const size_t dt_presets_count = sizeof(dt_presets) / sizeof(dt_presets[0]);

const dt_preset *dt_preset_find(const char *name)
{
    for (size_t i = 0; i < dt_presets_count; i++)
        if (strcmp(dt_presets[i].name, name) == 0)
            return &dt_presets[i];
    return NULL;
}
