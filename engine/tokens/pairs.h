/* pairs: maps a pair of numbers to another pair, for the merges of tokens and the tree of added tokens.
 *
 * Open addressing, at most half full. Adding an existing key replaces it.
 */
#ifndef DT_ENGINE_TOKENS_PAIRS_H
#define DT_ENGINE_TOKENS_PAIRS_H

#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_PAIR_NONE UINT32_MAX

typedef struct dt_pair {
    uint64_t key;  /* both numbers, the first one in the upper half */
    uint32_t rank; /* DT_PAIR_NONE: the slot is empty */
    int32_t id;
} dt_pair;

typedef struct dt_pairs {
    dt_pair *slots;
    uint64_t count, mask; /* mask: slots - 1 */
    int shift;
} dt_pairs;

/* Initializes a table with room for `count`; it grows. dt_pairs_release accepts a zeroed table. */
dt_status dt_pairs_init(dt_pairs *out, uint64_t count, dt_error *err);
void dt_pairs_release(dt_pairs *pairs);
dt_status dt_pairs_put(dt_pairs *pairs, int32_t first, int32_t second, uint32_t rank, int32_t id,
                       dt_error *err);

static inline uint64_t dt_pair_key(int32_t first, int32_t second)
{
    return (uint64_t)(uint32_t)first << 32 | (uint32_t)second;
}

static inline uint64_t dt_pair_slot(const dt_pairs *pairs, uint64_t key)
{
    return (key ^ key >> 29) * 0x9e3779b97f4a7c15ull >> pairs->shift;
}

/* Returns the slot of the pair; its rank is DT_PAIR_NONE if the pair is not in the table. */
static inline const dt_pair *dt_pairs_get(const dt_pairs *pairs, int32_t first, int32_t second)
{
    uint64_t key = dt_pair_key(first, second), at = dt_pair_slot(pairs, key);

    while (pairs->slots[at].rank != DT_PAIR_NONE && pairs->slots[at].key != key)
        at = (at + 1) & pairs->mask;
    return &pairs->slots[at];
}

#ifdef __cplusplus
}
#endif
#endif
