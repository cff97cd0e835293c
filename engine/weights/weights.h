/* weights: reads the initial parameters of a model from published files or from a checkpoint, and writes a
 * checkpoint as a folder that Hugging Face transformers can load.
 *
 * Files      recipes/foreign/weights.h finds them; recipes/architecture/published.h has the names and layouts of
 *            Hugging Face models, weights_bin.c next to it those of .bin files. F32, BF16
 *            and F16 are converted to fp32
 * Reading    each rank reads the slices that it holds, by pread; transposed matrices are transposed
 *            and permuted rows reordered while reading. Optimizer moments stay zero
 * Padding    rows after the vocabulary are zero: no target and no softmax includes them, so their
 *            gradient is zero too, and they are never exported
 * Errors     DT_ERR_RECIPE naming tensor and shapes if the files are of another model;
 *            DT_ERR_CORRUPT naming the file, also for values that are not finite
 * Threads    one
 */
#ifndef DT_ENGINE_WEIGHTS_WEIGHTS_H
#define DT_ENGINE_WEIGHTS_WEIGHTS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/dtype.h"
#include "base/error.h"
#include "engine/strategy/strategy.h"
#include "recipes/foreign/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_weights dt_weights;

/* Read the headers and descriptions of the files; their data only to check a digest. Borrows
 * `files`. */
dt_status dt_weights_open(dt_weights **out, const dt_weights_files *files, dt_error *err);
void dt_weights_close(dt_weights *weights); /* accepts NULL */

/* The same for the adapter of a folder of PEFT (the recipe's lora.from); *files must stay as it is. */
dt_status dt_weights_open_adapter(dt_weights **out, dt_weights_files *files,
                                  const dt_recipe *recipe, dt_arena *arena, dt_error *err);

/* The tokenizer of a checkpoint; NULL: unknown. Borrowed. */
const json_t *dt_weights_tokenizer(const dt_weights *weights);

/* Check that the files contain all of the model's parameters, and nothing else. */
dt_status dt_weights_check(dt_weights *weights, const dt_model *model, dt_error *err);

/* Read a slice of a parameter as fp32; padding rows are zero. Call dt_weights_check first. */
dt_status dt_weights_read(float *out, dt_weights *weights, const dt_model *model, int param,
                          const dt_slice *slice, dt_error *err);

/* Collective: checks the files, and fills the strategy's values. */
dt_status dt_weights_load(dt_weights *weights, dt_strategy_state *state, dt_error *err);

/* base: identifies the files below an adapter: {"files": [...]}, in the form of engine/data/fingerprint.h. */

/* New reference. */
dt_status dt_weights_base_make(json_t **out, const dt_weights_files *files, dt_error *err);
/* DT_ERR_RECIPE if the adapter of a checkpoint was trained on other files. base: dt_checkpoint_info.base; owner: the
 * checkpoint, for the message. */
dt_status dt_weights_base_check(const dt_weights_files *files, const json_t *base,
                                const char *owner, dt_error *err);

/* Check before a launch whether a run of this recipe can start from the files. vocab: of the data,
 * 0 unknown. */
dt_status dt_weights_fit(const dt_weights_files *files, const dt_recipe *recipe, int64_t vocab,
                         dt_error *err);

/* export: writes a checkpoint as a folder that Hugging Face transformers can load, or an adapter as one for PEFT.
 *
 *   config.json, generation_config.json    from the recipe; merged over those that the run started from
 *   model.safetensors                      or model-00001-of-00002.safetensors ... and
 *                                          model.safetensors.index.json, if one file would exceed
 *                                          the limit
 *   tokenizer.json, ...                    those that the run started from; generated if the tokens are
 *                                          characters or bytes
 *   adapter_config.json, adapter_model.safetensors   for PEFT, instead of the first two
 *
 * An adapter is merged into the weights of its base for transformers; a caller can compare the result before the folder
 * gets its name. Written under a temporary name, synced and renamed: the folder only appears complete.
 * Errors  DT_ERR_USAGE: it already exists; DT_ERR_RECIPE: transformers has no equivalent of the model;
 *         DT_ERR_CORRUPT, DT_ERR_IO
 */

typedef struct dt_weights_export_options {
    const char *checkpoint; /* directory of the checkpoint */
    const char *output;     /* the folder to create; an empty one is replaced */
    const char *origin; /* a folder with the original config.json and tokenizer files; NULL: none */
    dt_dtype dtype;     /* type of the weights: F32, BF16 or F16 */
    int64_t file_bytes; /* maximum size of tensors per file; a tensor is never split */
    bool peft, merge;   /* an adapter for PEFT; or merged with its base */
    /* MAY: called with the folder before tensors are written; an error removes it */
    dt_status (*accept)(const char *folder, dt_error *err);
    /* MAY, with merge: called with the complete folder before it gets its name; an error removes it */
    dt_status (*check)(void *self, const char *folder, dt_error *err);
    void *self;
} dt_weights_export_options;

/* What an export has written. */
typedef struct dt_weights_export_result {
    int64_t step, parameters, bytes, files; /* bytes of all tensors; number of files with tensors */
    char model_type[32];
} dt_weights_export_result;

dt_status dt_weights_export(dt_weights_export_result *out, const dt_weights_export_options *options,
                            dt_error *err);

/* export_folder.c: copies additional_chat_templates/NAME.jinja of the folder `from` to the same place in `into`. The modes are
 * those of open(2), before the umask. Does nothing if `from` has none. */
dt_status dt_weights_copy_templates(const char *from, const char *into, mode_t folder_mode,
                                    mode_t file_mode, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
