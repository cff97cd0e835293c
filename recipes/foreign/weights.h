/* weights: finds the files of initial weights (model.from) and reads the description of their model. The
 * engine reads the tensors (engine/weights).
 *
 *   DIR with config.json              Hugging Face: model.safetensors, or the files that
 *                                      model.safetensors.index.json names
 *                                      model.safetensors.index.json names; else pytorch_model.bin, or those that
 *                                      pytorch_model.bin.index.json names
 *   FILE.safetensors                  this file, and config.json in its folder; or FILE.bin of torch.save
 *   DIR with index.json, `complete`   a checkpoint of dtrun
 *   FILE.bin                          a model of llm.c or llama2.c (recipes/architecture/published.h)
 *
 * "run:NAME@best" is a checkpoint of a run, which a callback finds in the history (dt_weights_of_run).
 * Errors  DT_ERR_RECIPE naming the file: missing, a Git LFS pointer, or named by an index but missing
 */
#ifndef DT_RECIPES_FOREIGN_WEIGHTS_H
#define DT_RECIPES_FOREIGN_WEIGHTS_H

#include "base/json.h"
#include "base/memory.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_WEIGHTS_RUN "run:"

typedef enum dt_weights_kind {
    DT_WEIGHTS_NONE,
    DT_WEIGHTS_HUGGINGFACE,
    DT_WEIGHTS_CHECKPOINT,
    DT_WEIGHTS_BIN,
    DT_WEIGHTS_PEFT, /* an adapter (peft.h); never in a plan */
    DT_WEIGHTS_KINDS
} dt_weights_kind;

const char *dt_weights_kind_name(dt_weights_kind kind); /* "", "huggingface", "checkpoint", "bin", "peft" */

typedef struct dt_weights_files {
    dt_weights_kind kind;
    const char *folder;
    const char *description; /* config.json, index.json or the .bin file, absolute */
    dt_string_list files;    /* files with parameter values, absolute */
} dt_weights_files;

/* `from` is absolute. Everything lives in the arena. */
dt_status dt_weights_find(dt_weights_files *out, const char *from, dt_arena *arena, dt_error *err);

/* Returns the contents of config.json or index.json, or an equivalent config.json for a .bin file. The caller
 * owns *out. */
dt_status dt_weights_describe(json_t **out, const dt_weights_files *files, dt_error *err);

/* Finds the absolute path of the checkpoint "run:NAME", "run:NAME@best", "run:NAME@last" or "run:NAME@400". */
typedef dt_status dt_weights_of_run(const char **path, const char *name, dt_arena *arena,
                                    dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
