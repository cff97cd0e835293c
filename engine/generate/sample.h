/* sample: draws one token from a row of logits.
 *
 * Formula  1  with a penalty R, logits of tokens that have occurred: l / R above 0, l * R below (Keskar
 *             et al., "CTRL", 2019)
 *          2  softmax(logits / temperature) over the top_k largest
 *          3  of these the fewest likeliest tokens whose probabilities sum to top_p (Holtzman et al.,
 *             "The curious case of neural text degeneration", 2020); ties of the last one stay
 *          4  the inverse of the cumulative distribution at a Philox number of (seed, index): a pure
 *             function. Temperature 0 takes the largest logit after step 1, the first of equals
 * Shapes   logits (V), overwritten; seen (V): whether the text has that token, or NULL
 * Time     a few passes over the logits; no memory
 */
#ifndef DT_ENGINE_GENERATE_SAMPLE_H
#define DT_ENGINE_GENERATE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_sampling {
    double temperature;
    int64_t top_k;  /* sample among the k likeliest; 0: all */
    double top_p;   /* sample among the likeliest up to this sum; 0 or 1: all */
    double penalty; /* repetition penalty; 0 or 1: none */
    uint64_t seed;
} dt_sampling;

int32_t dt_sample_token(float *logits, int64_t vocab, const dt_sampling *how, const bool *seen,
                        uint32_t index);

#endif
