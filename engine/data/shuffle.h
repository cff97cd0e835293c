/* shuffle: Fisher and Yates' (Knuth, TAOCP 2, algorithm P) over Philox: the order is a pure function of the
 * key, the same on every rank, made again where it is needed.
 */
#ifndef DT_ENGINE_DATA_SHUFFLE_H
#define DT_ENGINE_DATA_SHUFFLE_H

#include "engine/philox.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a draw is for: Philox's `layer`, so that no two share numbers. */
typedef enum dt_draw_kind { DT_DRAW_SHIFT, DT_DRAW_ORDER, DT_DRAW_TIES } dt_draw_kind;

dt_philox_key dt_shuffle_key(uint64_t seed, int64_t epoch, dt_draw_kind what);

/* Number `index` of a stream of 64-bit draws, of which a Philox block holds two. */
static inline uint64_t dt_shuffle_draw(const dt_philox_key *key, uint64_t index)
{
    dt_philox_block block = dt_philox_draw(key, index / 2);
    const uint32_t *word = &block.word[index % 2 * 2];

    return (uint64_t)word[1] << 32 | word[0];
}

/* 0 .. count-1, drawn. */
void dt_shuffle(int64_t *out, int64_t count, const dt_philox_key *key);

#ifdef __cplusplus
}
#endif
#endif
