/* weights_bin: the .bin files of models that llm.c and llama2.c write: a header of numbers, then every
 * matrix, one behind the other, those of all layers together.
 *
 *   llm.c      256 int32: 20240326, version (3: fp32, 5: bf16), T, V, L, NH, C, Vp; GPT-2, whose token
 *              embedding has Vp >= V rows and is the head
 *   llama2.c   version 0: 7 int32: C, F, L, H, G, V (below 0: the head is a matrix of its own), T; fp32
 *              version 1: "24ka", 1, the same 7 with V > 0, a byte: the head is the embedding; 256 bytes
 *
 * Source     train_gpt2.py of https://github.com/karpathy/llm.c, export.py of
 *            https://github.com/karpathy/llama2.c. All numbers are little-endian
 * Meaning    told as a folder of Hugging Face tells it: a config.json and the header of a safetensors
 *            file, so that everything behind it is one. What differs is in the family: llm.c's matrices
 *            are not transposed, and rows of llama2.c's queries and keys lie as Meta has them (`paired`)
 * Errors     DT_ERR_RECIPE naming the file: none of these, of another version, its size another than
 *            its header says
 */
#ifndef DT_RECIPES_ARCHITECTURE_WEIGHTS_BIN_H
#define DT_RECIPES_ARCHITECTURE_WEIGHTS_BIN_H

#include "base/json.h"
#include "recipes/architecture/published.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_WEIGHTS_BIN_HEADER_BYTES 1024 /* of the longest */

typedef struct dt_weights_bin {
    const dt_published *family; /* whose names the tensors have */
    json_t *config;             /* as config.json has it */
    json_t *tensors;            /* as the header of a safetensors file has them */
    int64_t header_bytes;       /* where the first begins */
    int64_t head_width;         /* of a head of queries or keys */
} dt_weights_bin;

/* start: the first bytes of a file of file_bytes, `length` of them: as many as a header, or all. The caller
 * releases *out. */
dt_status dt_weights_bin_parse(dt_weights_bin *out, const unsigned char *start, size_t length,
                               int64_t file_bytes, const char *where, dt_error *err);
dt_status dt_weights_bin_read(dt_weights_bin *out, const char *path, dt_error *err);
void dt_weights_bin_release(dt_weights_bin *bin); /* accepts a zeroed one */

#ifdef __cplusplus
}
#endif
#endif
