/* merge: byte pair encoding of one word: of all pairs of neighbours that are in the table the one of
 * the lowest rank becomes one token, of several such the first, until none is left.
 *
 * Time     n * n for short words, which nearly all are; n log n for long ones
 * Memory   of long ones 20 bytes a token, kept until release
 */
#ifndef DT_ENGINE_TOKENS_MERGE_H
#define DT_ENGINE_TOKENS_MERGE_H

#include <stddef.h>

#include "engine/tokens/pairs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_merge_symbol {
    int32_t id; /* -1: merged into the one before it */
    uint32_t before, behind;
} dt_merge_symbol;

/* Scratch memory; zeroed before its first use. */
typedef struct dt_merge_memory {
    dt_merge_symbol *symbols;
    uint64_t *queue; /* a heap of rank << 32 | place */
    size_t room, queued;
} dt_merge_memory;

void dt_merge_release(dt_merge_memory *memory);

/* Merges ids[0 .. *count] in place. DT_ERR_NOMEM. */
dt_status dt_merge(int32_t *ids, size_t *count, const dt_pairs *merges, dt_merge_memory *memory,
                   dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
