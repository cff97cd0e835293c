/* huggingface: converts config.json of a Hugging Face folder to fields of a recipe, and back.
 *
 * Uses the tables of recipes/architecture/published.h. A field that is not in a table is refused by its
 * name, because it may change what the model computes. The engine reads the tensors (engine/weights).
 * Errors     DT_ERR_RECIPE naming `where` and the field
 */
#ifndef DT_RECIPES_FOREIGN_HUGGINGFACE_H
#define DT_RECIPES_FOREIGN_HUGGINGFACE_H

#include "base/json.h"
#include "base/memory.h"
#include "recipes/architecture/architecture.h"
#include "recipes/architecture/published.h"
#include "recipes/fields/fields.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_HUGGINGFACE_CONFIG     "config.json"
#define DT_HUGGINGFACE_GENERATION "generation_config.json"
#define DT_HUGGINGFACE_MODEL      "model.safetensors"
#define DT_HUGGINGFACE_INDEX      "model.safetensors.index.json"
#define DT_TORCH_MODEL            "pytorch_model.bin"
#define DT_TORCH_INDEX            "pytorch_model.bin.index.json"

#define DT_HUGGINGFACE_VALUES 64

/* The value that config.json gives a field of the recipe. */
typedef struct dt_huggingface_value {
    const char *path, *text; /* as in a recipe */
    const char *key;         /* key of config.json; NULL: fixed by the family */
    bool at_most;            /* the recipe may set a smaller value */
    int64_t repeats;         /* above 0: a pattern of the letters of this many blocks */
} dt_huggingface_value;

typedef struct dt_huggingface_model {
    const dt_published *family;
    const char *kind; /* model.kind */
    dt_huggingface_value values[DT_HUGGINGFACE_VALUES];
    size_t count;
} dt_huggingface_model;

/* Reads config.json. Texts live in the arena. */
dt_status dt_huggingface_read(dt_huggingface_model *out, const json_t *config, const char *where,
                              dt_arena *arena, dt_error *err);

/* Sets a field to the text of a dt_huggingface_value; that of a list has its items, separated by blanks. */
dt_status dt_huggingface_set(dt_recipe *recipe, const dt_field *field, const char *text,
                             dt_arena *arena, dt_error *err);

/* Finds the family of the recipe's model: model.family, or the first that computes it. DT_ERR_RECIPE if there is none. */
dt_status dt_huggingface_family(const dt_published **out, const dt_recipe *recipe, dt_error *err);

/* Writes config.json of the recipe's model. vocab: of the model. `like` (may be NULL): the config.json that
 * the run started from, whose other fields are kept. New reference. */
dt_status dt_huggingface_write(json_t **out, const dt_recipe *recipe, int64_t vocab,
                               const json_t *like, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
