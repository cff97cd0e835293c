/* joints: knows which characters can be neighbours inside a token that merges make. Between all other characters a
 * text can be cut into words without changing its ids, because no merge crosses such a place.
 *
 * Applies to BPE on characters, whose words are otherwise as long as the text (byte fallback without a split, as in
 * Llama 2), or as long as a run without spaces. Pairs of characters are stored as hashes: two pairs with one hash only
 * make a word longer.
 */
#ifndef DT_ENGINE_TOKENS_JOINTS_H
#define DT_ENGINE_TOKENS_JOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/tokens/pairs.h"
#include "engine/tokens/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_JOINTS_LOG   18
#define DT_JOINTS_BLOCK 64

typedef struct dt_joints {
    bool cuts;               /* false: no place is known where a text can be cut */
    bool ends_at_breaks;     /* a text can be cut between a line break and all but a line break */
    uint8_t ascii[128][128]; /* [left][right] 1: a word ends between them */
    uint64_t others[1 << (DT_JOINTS_LOG - 6)]; /* the bits of hashes of other pairs */
    uint64_t *known; /* the bits of characters that are tokens; NULL: all others have byte tokens */
} dt_joints;

/* The model. All borrowed until dt_joints_find returns. */
typedef struct dt_joints_from {
    const dt_vocab *vocab;
    const dt_pairs *merges;
    const int32_t *bytes; /* [256] ids of the byte tokens, -1: none; NULL: without byte fallback */
    uint32_t blank; /* the character that spaces of the text stand for; 0: they are themselves */
} dt_joints_from;

/* Finds the pairs of neighbours in the tokens that the merges make. *out must be zeroed. */
dt_status dt_joints_find(dt_joints *out, const dt_joints_from *from, dt_error *err);
void dt_joints_release(dt_joints *joints); /* accepts a zeroed one */

/* Returns the mask of word ends from at[0] on: bit i is set if a word ends before at[i]. Looks at
 * DT_JOINTS_BLOCK bytes, up to the first one that is not ASCII. Returns 0 if the first word does not end in them. */
static inline uint64_t dt_joints_block(const dt_joints *joints, const unsigned char *at,
                                       const unsigned char *end)
{
    int count = end - at < DT_JOINTS_BLOCK ? (int)(end - at) : DT_JOINTS_BLOCK;
    uint64_t ends = 0;

    for (int i = 1; i < count && (at[i - 1] | at[i]) < 128; i++)
        ends |= (uint64_t)joints->ascii[at[i - 1]][at[i]] << i;
    return ends;
}

/* Returns the end of the word that starts at `at`, which must be before `end`. Valid UTF-8. */
const unsigned char *dt_joints_next(const dt_joints *joints, const unsigned char *at,
                                    const unsigned char *end);

#ifdef __cplusplus
}
#endif
#endif
