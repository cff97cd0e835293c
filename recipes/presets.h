/* presets: published model dimensions by name. */
#ifndef DT_RECIPES_PRESETS_H
#define DT_RECIPES_PRESETS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_preset {
    const char *name;
    int64_t layers, heads, embed;
} dt_preset;

extern const dt_preset dt_presets[];
extern const size_t dt_presets_count;

/* NULL where there is none of that name. */
const dt_preset *dt_preset_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
