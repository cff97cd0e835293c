/* split_block: finds the word ends in up to 64 bytes of ASCII at once, by arithmetic on masks.
 *
 * Splits   DT_SPLIT_GPT2, LLAMA3, QWEN, CL100K and O200K; `\p{N}`, then GPT2, as in SmolLM2
 * Result   equals that of the patterns in split.h; unit.tokens_split compares both
 */
#ifndef DT_ENGINE_TOKENS_SPLIT_BLOCK_H
#define DT_ENGINE_TOKENS_SPLIT_BLOCK_H

#include <stddef.h>

#include "engine/tokens/ascii_masks.h"
#include "engine/tokens/split.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_split_block_kind {
    DT_BLOCK_NONE,
    DT_BLOCK_GPT2,
    DT_BLOCK_DIGITS_GPT2,
    DT_BLOCK_LLAMA3, /* and CL100K, which differs at the end of the text */
    DT_BLOCK_QWEN,
    DT_BLOCK_O200K
} dt_split_block_kind;

/* DT_BLOCK_NONE: only dt_splitter_next supports the split. */
dt_split_block_kind dt_split_block_kind_of(const dt_split *split);

/* Returns the word ends after the word start at[0]: bit i is set if a word ends before at[i]. The mask has only the ends
 * that the bytes before the first one that is not ASCII determine, and none is left out before its highest bit. 0: the
 * end of the first word is not among them. `left`: bytes from at[0] to the end of the text. */
uint64_t dt_split_block(dt_split_block_kind kind, const unsigned char *at, size_t left);

#ifdef __cplusplus
}
#endif
#endif
