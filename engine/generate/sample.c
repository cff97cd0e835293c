#include "engine/generate/sample.h"

#include <math.h>
#include <string.h>

#include "engine/philox.h"

static int64_t largest(const float *logits, int64_t vocab)
{
    int64_t best = 0;

    for (int64_t v = 1; v < vocab; v++)
        if (logits[v] > logits[best])
            best = v;
    return best;
}

/* Map a float to an integer of the same order. */
static uint32_t rank_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The largest rank such that all values of that rank or above weigh at least `target` together.
 * Determined one byte at a time, each by a pass that sums the weights per byte value. Each value
 * weighs 1 or, with `by_value`, itself. */
static uint32_t find_floor(const float *values, int64_t count, double target, bool by_value)
{
    uint32_t floor = 0;
    double above = 0;

    for (int shift = 24; shift >= 0; shift -= 8) {
        double weights[256] = {0};
        int byte = 255;

        for (int64_t i = 0; i < count; i++) {
            uint32_t rank = rank_of(values[i]);

            if (shift == 24 || rank >> (shift + 8) == floor >> (shift + 8))
                weights[rank >> shift & 255] += by_value ? values[i] : 1;
        }
        while (byte > 0 && above + weights[byte] < target)
            above += weights[byte--];
        floor |= (uint32_t)byte << shift;
    }
    return floor;
}

/* Set all logits below the k-th largest to -infinity; those equal to it stay, even past k. */
static void keep_largest(float *logits, int64_t vocab, int64_t k)
{
    uint32_t floor = find_floor(logits, vocab, (double)k, false);

    for (int64_t v = 0; v < vocab; v++)
        if (rank_of(logits[v]) < floor)
            logits[v] = -INFINITY;
}

/* Zero the less likely tokens, given probabilities that sum to `total`. Returns the sum of the
 * rest. */
static double keep_likeliest(float *chances, int64_t vocab, double total, double top_p)
{
    uint32_t floor = find_floor(chances, vocab, total * top_p, true);
    double kept = 0;

    for (int64_t v = 0; v < vocab; v++) {
        if (rank_of(chances[v]) < floor)
            chances[v] = 0;
        kept += chances[v];
    }
    return kept;
}

static void penalize(float *logits, int64_t vocab, double penalty, const bool *seen)
{
    for (int64_t v = 0; v < vocab; v++)
        if (seen[v])
            logits[v] = (float)(logits[v] > 0 ? logits[v] / penalty : logits[v] * penalty);
}

int32_t dt_sample_token(float *logits, int64_t vocab, const dt_sampling *how, const bool *seen,
                        uint32_t index)
{
    dt_philox_key key = {.seed = how->seed, .step = index, .op = DT_PHILOX_SAMPLE};
    double total = 0, until;
    int64_t best, last;
    float top;

    if (seen != NULL && how->penalty > 0)
        penalize(logits, vocab, how->penalty, seen);
    last = best = largest(logits, vocab);
    top = logits[best];
    if (how->temperature <= 0)
        return (int32_t)best;
    if (how->top_k > 0 && how->top_k < vocab)
        keep_largest(logits, vocab, how->top_k);
    for (int64_t v = 0; v < vocab; v++) {
        logits[v] = (float)exp(((double)logits[v] - top) / how->temperature);
        total += logits[v];
    }
    if (how->top_p > 0 && how->top_p < 1)
        total = keep_likeliest(logits, vocab, total, how->top_p);
    until = dt_philox_uniform(dt_philox_draw(&key, 0).word[0]) * total;
    for (int64_t v = 0; v < vocab; v++) {
        if (logits[v] <= 0)
            continue;
        last = v;
        until -= logits[v];
        if (until < 0)
            break;
    }
    return (int32_t)last;
}
