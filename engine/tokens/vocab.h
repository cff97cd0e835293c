/* vocab: the tables of a tokenizer: tokens by id and by their bytes, and pairs of numbers, for merges.
 *
 * Ids may have holes. A token that is never encoded from text is found by its id only.
 */
#ifndef DT_ENGINE_TOKENS_VOCAB_H
#define DT_ENGINE_TOKENS_VOCAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* pairs: maps a pair of numbers to another pair, for the merges of tokens and the tree of added tokens.
 *
 * Open addressing, at most half full. Adding an existing key replaces it. A filter with a bit for each hash, small
 * enough for a processor's cache, answers for nearly all pairs that are not in the table.
 */

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

#define DT_VOCAB_MAX ((int64_t)1 << 24) /* tokens; also the upper bound of model.vocab */

typedef struct dt_vocab_token {
    uint64_t start;
    uint32_t length;
    bool there;
} dt_vocab_token;

typedef struct dt_vocab {
    dt_strbuf bytes;        /* the bytes of all tokens */
    dt_vocab_token *tokens; /* [capacity], zeroed from `size` on */
    int64_t size, capacity; /* size: the largest id + 1 */
    int32_t *slots;         /* id + 1; 0: free */
    uint64_t found, mask;   /* found: tokens that can be found by their bytes */
} dt_vocab;

dt_status dt_vocab_init(dt_vocab *out, dt_error *err);
void dt_vocab_release(dt_vocab *vocab); /* accepts a zeroed one */

/* Adds a token; `findable`: also by its bytes. DT_ERR_CORRUPT if the id is in use or out of range, or if the bytes
 * are those of another findable token. */
dt_status dt_vocab_add(dt_vocab *vocab, int64_t id, const char *bytes, size_t length, bool findable,
                       dt_error *err);

/* Returns the id of the token with these bytes; -1: none. */
int32_t dt_vocab_find(const dt_vocab *vocab, const void *bytes, size_t length);

/* Returns the bytes of a token; NULL if no token has the id. Borrowed until the next token is added. */
const char *dt_vocab_text(const dt_vocab *vocab, int64_t id, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
