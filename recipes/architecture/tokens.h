/* tokens: defines constants of kinds that predict tokens. */
#ifndef DT_RECIPES_ARCHITECTURE_TOKENS_H
#define DT_RECIPES_ARCHITECTURE_TOKENS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_VOCAB_MULTIPLE 128                 /* vocabularies are padded to a multiple of it */
#define DT_LOGITS_BYTES   ((int64_t)64 << 20) /* largest chunk of logits, but at least one row */
#define DT_VOCAB_NUMBERS  4    /* of a row, that ranks exchange if they divide the vocabulary */
#define DT_BLOCKS_MAX     4095 /* the dropout key has 12 bits for the layer */

static inline int64_t dt_vocab_pad(int64_t vocab)
{
    return (vocab + DT_VOCAB_MULTIPLE - 1) / DT_VOCAB_MULTIPLE * DT_VOCAB_MULTIPLE;
}

#ifdef __cplusplus
}
#endif
#endif
