/* sample: one token from a row of logits.
 *
 * Formula  softmax(logits / temperature) over the top_k largest, then the inverse of its
 *          cumulative distribution at a Philox number of (seed, index): a pure function.
 *          temperature 0 takes the largest, the first of equals
 * Shapes   logits (V), overwritten
 * Units    top_k tokens; 0: all
 */
#ifndef DT_ENGINE_GENERATE_SAMPLE_H
#define DT_ENGINE_GENERATE_SAMPLE_H

#include <stdint.h>

typedef struct dt_sampling {
    double temperature;
    int64_t top_k;
    uint64_t seed;
} dt_sampling;

int32_t dt_sample_token(float *logits, int64_t vocab, const dt_sampling *how, uint32_t index);

#endif
