#include "recipes/fields/presets.h"

#include <string.h>

#define ROW(preset, ...) {.name = preset, .values = {__VA_ARGS__}},

const dt_preset dt_presets[] = {DT_PRESETS(ROW)};
const size_t dt_presets_count = sizeof(dt_presets) / sizeof(dt_presets[0]);

const dt_preset *dt_preset_find(const char *name)
{
    for (size_t i = 0; i < dt_presets_count; i++)
        if (strcmp(dt_presets[i].name, name) == 0)
            return &dt_presets[i];
    return NULL;
}

const char *dt_preset_value_of(const dt_preset *preset, const char *path)
{
    for (size_t i = 0; i < DT_PRESET_VALUES && preset->values[i].path != NULL; i++)
        if (strcmp(preset->values[i].path, path) == 0)
            return preset->values[i].text;
    return NULL;
}
