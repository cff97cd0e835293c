/* write: writes a trained tokenizer as a tokenizer.json that Hugging Face's libraries and dt_bpe_parse read:
 * byte-level, with text split as in GPT-2, Llama 3 or Qwen. */
#ifndef DT_ENGINE_TOKENS_WRITE_H
#define DT_ENGINE_TOKENS_WRITE_H

#include "base/json.h"
#include "engine/tokens/split.h"
#include "engine/tokens/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_bpe_merge {
    int32_t first, second; /* ids; the first merge of the list is tried first */
} dt_bpe_merge;

typedef struct dt_bpe_draft {
    dt_vocab vocab;        /* ids without holes: special tokens, the 256 bytes, merged tokens */
    int64_t special_count; /* special tokens have the ids below this one */
    const dt_bpe_merge *merges;
    int64_t merge_count;
    dt_split_kind split; /* GPT2, LLAMA3 or QWEN */
} dt_bpe_draft;

/* Begins a draft with the special tokens (UTF-8) and the 256 bytes, in the order of the library's trainer.
 * DT_ERR_USAGE: a special token that is empty or a single byte's, or given twice. */
dt_status dt_bpe_draft_begin(dt_bpe_draft *out, const char *const *special, size_t special_count,
                             dt_split_kind split, dt_error *err);
void dt_bpe_draft_release(dt_bpe_draft *draft); /* not the merges; accepts a zeroed one */

/* byte_map.c: returns the printable character that stands for a byte in a byte-level vocabulary. */
uint32_t dt_byte_map_code(unsigned char byte);

/* Returns the tokenizer.json, a new reference; NULL if memory is exhausted. */
json_t *dt_bpe_draft_json(const dt_bpe_draft *draft);

#ifdef __cplusplus
}
#endif
#endif
