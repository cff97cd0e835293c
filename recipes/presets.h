/* presets: published models by name: values for fields that the recipe leaves out. */
#ifndef DT_RECIPES_PRESETS_H
#define DT_RECIPES_PRESETS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

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
