/* split_block: finds the word ends in up to 64 bytes of ASCII at once, by arithmetic on masks.
 *
 * Kinds    DT_SPLIT_GPT2, LLAMA3, QWEN, CL100K, O200K
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

bool dt_split_block_has(dt_split_kind kind);

/* Returns the word ends after the word start at[0]: bit i is set if a word ends before at[i]. The mask has only the ends
 * that the bytes before the first one that is not ASCII determine, and none is left out before its highest bit. 0: the
 * end of the first word is not among them. `left`: bytes from at[0] to the end of the text. */
uint64_t dt_split_block(dt_split_kind kind, const unsigned char *at, size_t left);

#ifdef __cplusplus
}
#endif
#endif
