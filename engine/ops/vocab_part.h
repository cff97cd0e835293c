/* vocab_part: describes the rows of a vocabulary that a rank has of a divided embedding or head. */
#ifndef DT_ENGINE_OPS_VOCAB_PART_H
#define DT_ENGINE_OPS_VOCAB_PART_H

#include <stdint.h>

#include "recipes/architecture/tokens.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_vocab_part {
    int64_t first; /* first token of the part */
    int64_t count; /* tokens of the part; rows after them are padding. Can be 0 */
    int64_t all;   /* tokens of the whole vocabulary */
} dt_vocab_part;

#ifdef __cplusplus
}
#endif
#endif
