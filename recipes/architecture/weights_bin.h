/* weights_bin: parses the .bin files of models of llm.c and llama2.c: a header of numbers, then all matrices,
 * with those of all layers together.
 *
 *   llm.c      256 int32: 20240326, version (3: fp32, 5: bf16), T, V, L, NH, C, Vp; GPT-2, whose token
 *              embedding has Vp >= V rows and is the head
 *   llama2.c   version 0: 7 int32: C, F, L, H, G, V (below 0: the head is a separate matrix), T; fp32
 *              version 1: "24ka", 1, the same 7 with V > 0, a byte: the head is the embedding; 256 bytes
 *
 * Source     train_gpt2.py of https://github.com/karpathy/llm.c, export.py of
 *            https://github.com/karpathy/llama2.c. All numbers are little-endian
 * Meaning    converted to the config.json and safetensors header of a Hugging Face folder, so that all
 *            other code treats both alike. The family has the differences: llm.c's matrices
 *            are not transposed, and llama2.c's queries and keys are in Meta's order (`paired`)
 * Errors     DT_ERR_RECIPE naming the file: an unknown format, another version, or a size that differs from
 *            the header's
 */
#ifndef DT_RECIPES_ARCHITECTURE_WEIGHTS_BIN_H
#define DT_RECIPES_ARCHITECTURE_WEIGHTS_BIN_H

#include "base/json.h"
#include "recipes/architecture/published.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_WEIGHTS_BIN_HEADER_BYTES 1024 /* bytes of the longest header */

typedef struct dt_weights_bin {
    const dt_published *family; /* family that defines the names of the tensors */
    json_t *config;             /* equivalent of config.json */
    json_t *tensors;            /* equivalent of the header of a safetensors file */
    int64_t header_bytes;       /* offset of the first tensor */
    int64_t head_width;         /* width of a head of queries or keys */
} dt_weights_bin;

/* Parses the first `length` bytes of a file of file_bytes: a header, or the whole file. The caller releases
 * *out. */
dt_status dt_weights_bin_parse(dt_weights_bin *out, const unsigned char *start, size_t length,
                               int64_t file_bytes, const char *where, dt_error *err);
dt_status dt_weights_bin_read(dt_weights_bin *out, const char *path, dt_error *err);
void dt_weights_bin_release(dt_weights_bin *bin); /* accepts a zeroed struct */

#ifdef __cplusplus
}
#endif
#endif
