/* export: writes a checkpoint as a folder that Hugging Face transformers can load.
 *
 *   config.json, generation_config.json    from the recipe; merged over those that the run started from
 *   model.safetensors                      or model-00001-of-00002.safetensors ... and
 *                                          model.safetensors.index.json, if one file would exceed
 *                                          the limit
 *   tokenizer.json, ...                    those that the run started from; generated if the tokens are
 *                                          characters or bytes
 *
 * Written under a temporary name, synced and renamed: the folder only appears complete.
 * Errors  DT_ERR_USAGE: it already exists; DT_ERR_RECIPE: transformers has no equivalent of the model;
 *         DT_ERR_CORRUPT, DT_ERR_IO
 */
#ifndef DT_ENGINE_WEIGHTS_EXPORT_H
#define DT_ENGINE_WEIGHTS_EXPORT_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_weights_export_options {
    const char *checkpoint; /* directory of the checkpoint */
    const char *output;     /* the folder to create; an empty one is replaced */
    const char *origin; /* a folder with the original config.json and tokenizer files; NULL: none */
    dt_dtype dtype;     /* type of the weights: F32, BF16 or F16 */
    int64_t file_bytes; /* maximum size of tensors per file; a tensor is never split */
} dt_weights_export_options;

/* What an export has written. */
typedef struct dt_weights_export_result {
    int64_t step, parameters, bytes, files; /* bytes of all tensors; number of files with tensors */
    char model_type[32];
} dt_weights_export_result;

dt_status dt_weights_export(dt_weights_export_result *out, const dt_weights_export_options *options,
                            dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
