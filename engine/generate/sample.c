#include "engine/generate/sample.h"

#include <math.h>

#include "engine/philox.h"

#include "base/banned.h"

static int64_t largest(const float *logits, int64_t vocab)
{
    int64_t best = 0;

    for (int64_t v = 1; v < vocab; v++)
        if (logits[v] > logits[best])
            best = v;
    return best;
}

/* How many logits are `floor` or more. */
static int64_t count_from(const float *logits, int64_t vocab, float floor)
{
    int64_t count = 0;

    for (int64_t v = 0; v < vocab; v++)
        count += logits[v] >= floor;
    return count;
}

/* All below the k-th largest become -infinity; those equal to it stay, even past k. The value is
 * found by bisection: no memory, and the vocabulary stays in place. */
static void keep_largest(float *logits, int64_t vocab, int64_t k)
{
    float high = logits[largest(logits, vocab)], low = high;

    for (int64_t v = 0; v < vocab; v++)
        low = fminf(low, logits[v]);
    while (nextafterf(low, high) < high) { /* at least k from low on, fewer from high on */
        float middle = low + (high - low) / 2;

        if (middle <= low || middle >= high)
            middle = nextafterf(low, high);
        if (count_from(logits, vocab, middle) >= k)
            low = middle;
        else
            high = middle;
    }
    if (count_from(logits, vocab, high) >= k)
        low = high;
    for (int64_t v = 0; v < vocab; v++)
        if (logits[v] < low)
            logits[v] = -INFINITY;
}

int32_t dt_sample_token(float *logits, int64_t vocab, const dt_sampling *how, uint32_t index)
{
    dt_philox_key key = {.seed = how->seed, .step = index, .op = DT_PHILOX_SAMPLE};
    int64_t best = largest(logits, vocab), last = best;
    float top = logits[best];
    double total = 0, until;

    if (how->temperature <= 0)
        return (int32_t)best;
    if (how->top_k > 0 && how->top_k < vocab)
        keep_largest(logits, vocab, how->top_k);
    for (int64_t v = 0; v < vocab; v++) {
        logits[v] = (float)exp(((double)logits[v] - top) / how->temperature);
        total += logits[v];
    }
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
