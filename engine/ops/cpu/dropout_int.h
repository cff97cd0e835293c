/* dropout_int: decides which elements dropout keeps. Element i is kept if the uniform number of
 * Philox word i is >= p; kept elements are scaled by 1/(1-p).
 */
#ifndef DT_ENGINE_OPS_CPU_DROPOUT_INT_H
#define DT_ENGINE_OPS_CPU_DROPOUT_INT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/philox.h"

typedef struct dt_dropout {
    dt_philox_key key;
    float threshold, scale; /* p, 1/(1-p); p = 0 keeps all and needs no key */
} dt_dropout;

static inline dt_dropout dt_dropout_of(double p, const dt_philox_key *key)
{
    dt_dropout d = {.threshold = (float)p, .scale = (float)(1.0 / (1.0 - p))};

    DT_ASSERT(p >= 0.0 && p < 1.0 && (p == 0.0 || key != NULL));
    if (p > 0.0)
        d.key = dt_philox_now(key);
    return d;
}

/* Returns the number of floats that dt_dropout_draw() writes for n elements. */
static inline int64_t dt_dropout_floats(int64_t n)
{
    return n + 8;
}

/* Returns the uniform numbers of elements start .. start+n-1: a pointer into `scratch`, not always
 * to its beginning, because numbers are drawn four at a time. */
static inline const float *dt_dropout_draw(const dt_dropout *d, int64_t start, int64_t n,
                                           float *scratch)
{
    uint64_t first = (uint64_t)start / 4;
    int64_t blocks = (start % 4 + n + 3) / 4;
    dt_philox_key key = d->key;

    key.clock = NULL; /* it is NULL here: the loop needs no branch */
#pragma omp simd
    for (int64_t b = 0; b < blocks; b++) {
        dt_philox_block block = dt_philox_draw(&key, first + (uint64_t)b);

        scratch[4 * b] = dt_philox_uniform(block.word[0]);
        scratch[4 * b + 1] = dt_philox_uniform(block.word[1]);
        scratch[4 * b + 2] = dt_philox_uniform(block.word[2]);
        scratch[4 * b + 3] = dt_philox_uniform(block.word[3]);
    }
    return scratch + start % 4;
}

#endif
