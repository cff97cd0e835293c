/* bin: reads the headers of files of token ids.
 *
 *   llm.c     header of 256 int32: magic, version, token count, zeros; then the tokens.
 *             magic 20240520 version 1: uint16 (GPT-2); 20240801 version 7: uint32 (Llama 3)
 *   nanoGPT   uint16 without a header
 *   fairseq   and Megatron: uint8, uint16, int32 or int64 without a header (recipes/foreign/databin.h)
 *
 * All little-endian.
 */
#ifndef DT_ENGINE_BIN_H
#define DT_ENGINE_BIN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/data/files.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_BIN_HEADER_BYTES 1024

typedef struct dt_bin_layout {
    int64_t header_bytes, count;
    int width_bytes; /* bytes per token: 1, 2, 4 or 8 */
} dt_bin_layout;

/* Whether the first 4 bytes of a file are one of llm.c's magic numbers. */
bool dt_bin_has_magic(const unsigned char *start);

/* Read the header and check it against the file's size. DT_ERR_RECIPE naming the file. */
dt_status dt_bin_layout_read(dt_bin_layout *out, const dt_data_file *file, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
