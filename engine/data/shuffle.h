/* shuffle: shuffles by Fisher and Yates (Knuth, TAOCP 2, algorithm P) over Philox. The order depends only
 * on the key, so every rank can compute it again when needed.
 */
#ifndef DT_ENGINE_DATA_SHUFFLE_H
#define DT_ENGINE_DATA_SHUFFLE_H

#include "engine/philox.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Purpose of a draw: Philox's `layer`, so that draws for different purposes are independent. */
typedef enum dt_draw_kind { DT_DRAW_SHIFT, DT_DRAW_ORDER, DT_DRAW_TIES } dt_draw_kind;

dt_philox_key dt_shuffle_key(uint64_t seed, int64_t epoch, dt_draw_kind what);

/* Number `index` of a stream of 64-bit draws; a Philox block has two. */
static inline uint64_t dt_shuffle_draw(const dt_philox_key *key, uint64_t index)
{
    dt_philox_block block = dt_philox_draw(key, index / 2);
    const uint32_t *word = &block.word[index % 2 * 2];

    return (uint64_t)word[1] << 32 | word[0];
}

/* Write a random permutation of 0 .. count-1. */
void dt_shuffle(int64_t *out, int64_t count, const dt_philox_key *key);

#ifdef __cplusplus
}
#endif
#endif
