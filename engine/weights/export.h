/* export: a checkpoint as a folder that Hugging Face's transformers load.
 *
 *   config.json, generation_config.json    of the recipe; over those that the run began from
 *   model.safetensors                      or model-00001-of-00002.safetensors ... and
 *                                          model.safetensors.index.json, where files would be larger
 *                                          than asked for
 *   tokenizer.json, ...                    as the run began from them; made, if its tokens are characters
 *                                          or bytes
 *
 * Written under another name, synced and renamed: the folder is there when all of it is.
 * Errors  DT_ERR_USAGE: it is there already; DT_ERR_RECIPE: the model has no form there;
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
    const char *checkpoint; /* a directory */
    const char *output;     /* the folder to make; one that is empty is taken */
    const char
        *origin;    /* a folder with config.json and tokenizer files to continue from; NULL: none */
    dt_dtype dtype; /* F32, BF16 or F16 */
    int64_t file_bytes; /* of tensors in one file, at most; a tensor is never divided */
} dt_weights_export_options;

/* What was made. */
typedef struct dt_weights_export_result {
    int64_t step, parameters, bytes, files; /* bytes: of the tensors; files: those with tensors */
    char model_type[32];
} dt_weights_export_result;

dt_status dt_weights_export(dt_weights_export_result *out, const dt_weights_export_options *options,
                            dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
