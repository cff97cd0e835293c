/* pairs: maps a pair of numbers to another pair, for the merges of tokens and the tree of added tokens.
 *
 * Open addressing, at most half full. Adding an existing key replaces it. A filter with a bit for each hash, small
 * enough for a processor's cache, answers for nearly all pairs that are not in the table.
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
    uint64_t *filter;     /* bits: 8 for each slot */
    uint64_t count, mask; /* mask: slots - 1 */
    int shift;            /* from a hash to its slot */
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

static inline uint64_t dt_pair_hash(uint64_t key)
{
    return (key ^ key >> 29) * 0x9e3779b97f4a7c15ull;
}

/* The hash of a key as a bit of the filter. */
static inline uint64_t dt_pair_bit(const dt_pairs *pairs, uint64_t hash)
{
    return hash >> (pairs->shift - 3);
}

/* Returns the slot of the pair; its rank is DT_PAIR_NONE if the pair is not in the table. */
static inline const dt_pair *dt_pairs_get(const dt_pairs *pairs, int32_t first, int32_t second)
{
    static const dt_pair none = {.rank = DT_PAIR_NONE};
    uint64_t key = dt_pair_key(first, second), hash = dt_pair_hash(key);
    uint64_t bit = dt_pair_bit(pairs, hash), at = hash >> pairs->shift;

    if ((pairs->filter[bit / 64] >> bit % 64 & 1) == 0)
        return &none;
    while (pairs->slots[at].rank != DT_PAIR_NONE && pairs->slots[at].key != key)
        at = (at + 1) & pairs->mask;
    return &pairs->slots[at];
}

#ifdef __cplusplus
}
#endif
#endif
