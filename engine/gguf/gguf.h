/* gguf: writes a folder of Hugging Face as a GGUF file, version 3, for llama.cpp and programs that read its files.
 *
 * Source   config.json, model.safetensors in F32, tokenizer.json with tokenizer_config.json, chat_template.jinja: what an
 *          export of dtrun writes
 * Kinds    the rows of kinds.c: a kind is a table of tensors, one of keys and one of what it needs. Those that are checked
 *          are what llama.cpp computes: nothing else is written
 * Types    matrices are F32, F16, BF16 or Q8_0; vectors and learned positions stay F32. Q8_0 has the bits of llama.cpp's
 *          reference quantization; a matrix whose rows are no multiple of 32 is F16 then
 * Tokens   byte-level BPE, and BPE of SentencePiece with tokens for bytes
 * Format   https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 * Errors   DT_ERR_RECIPE naming what a GGUF file cannot have; DT_ERR_USAGE: the file exists; DT_ERR_CORRUPT, DT_ERR_IO
 */
#ifndef DT_ENGINE_GGUF_GGUF_H
#define DT_ENGINE_GGUF_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

typedef enum dt_gguf_type {
    DT_GGUF_F32 = 0,
    DT_GGUF_F16 = 1,
    DT_GGUF_Q8_0 = 8,
    DT_GGUF_BF16 = 30
} dt_gguf_type;

/* "f32", "f16", "bf16", "q8_0"; false: another word. */
bool dt_gguf_type_of(dt_gguf_type *out, const char *name);

typedef struct dt_gguf_result {
    int64_t tensors, bytes;
    char architecture[32];
    json_t *notes; /* texts: in which respects llama.cpp differs. The caller's */
} dt_gguf_result;

/* Whether the folder, which needs no tensors yet, can be written. DT_ERR_RECIPE naming what llama.cpp cannot have. */
dt_status dt_gguf_check(const char *folder, dt_error *err);

/* name: of the model, in the file. */
dt_status dt_gguf_write(dt_gguf_result *out, const char *folder, const char *path,
                        dt_gguf_type type, const char *name, bool replace, dt_error *err);

#endif
