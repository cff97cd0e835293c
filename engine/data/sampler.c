/* The order of an epoch is Fisher and Yates' shuffle (Knuth, TAOCP 2, algorithm P) over Philox:
 * a pure function of seed and epoch, the same on every rank, made again where it is needed. */
#include <stdlib.h>
#include <string.h>

#include "engine/data/dataset_int.h"
#include "engine/philox.h"

#include "base/banned.h"

/* What a draw is for: Philox's `layer`, so that the two never share numbers. */
enum { DRAW_SHIFT, DRAW_ORDER };

/* Number `index` of a stream of 64-bit draws, of which a Philox block holds two. */
static uint64_t draw(const dt_philox_key *key, uint64_t index)
{
    dt_philox_block block = dt_philox_draw(key, index / 2);
    const uint32_t *word = &block.word[index % 2 * 2];

    return (uint64_t)word[1] << 32 | word[0];
}

static dt_philox_key key_of(const dt_sampler *sampler, int64_t epoch, uint32_t what)
{
    dt_philox_key key = {
        .seed = sampler->seed, .step = (uint32_t)epoch, .layer = what, .op = DT_PHILOX_SHUFFLE};
    return key;
}

/* Where an epoch's first sequence starts: in [0, T), less where that would leave none. */
static int64_t shift_of(const dt_sampler *sampler, int64_t epoch)
{
    dt_philox_key key = key_of(sampler, epoch, DRAW_SHIFT);
    int64_t spare = sampler->dataset->train_count - sampler->tokens; /* at least 1 */
    int64_t range = spare < sampler->tokens ? spare : sampler->tokens;

    return (int64_t)(draw(&key, 0) % (uint64_t)range);
}

/* Sequences of an epoch; the last token has no target. */
static int64_t count_of(const dt_sampler *sampler, int64_t epoch)
{
    return (sampler->dataset->train_count - 1 - shift_of(sampler, epoch)) / sampler->tokens;
}

dt_status dt_sampler_init(dt_sampler *out, const dt_dataset *dataset, int64_t tokens, uint64_t seed,
                          dt_error *err)
{
    int64_t most;

    memset(out, 0, sizeof(*out));
    DT_ASSERT(tokens > 0);
    if (dataset->train_count <= tokens)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "the training data have %lld tokens, fewer than one sequence of %lld and its "
            "last target; give more text, or fewer batch.tokens",
            (long long)dataset->train_count, (long long)tokens);
    out->dataset = dataset;
    out->tokens = tokens;
    out->seed = seed;
    out->order_epoch = -1;
    most = (dataset->train_count - 1) / tokens; /* without a shift */
    out->order = malloc((size_t)most * sizeof(*out->order));
    if (out->order == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the order of %lld sequences",
                       (long long)most);
    return DT_OK;
}

void dt_sampler_release(dt_sampler *sampler)
{
    free(sampler->order);
    memset(sampler, 0, sizeof(*sampler));
}

/* Past the ends of epochs, until the sample lies in its epoch. */
static void carry(const dt_sampler *sampler, int64_t *epoch, int64_t *sample)
{
    int64_t count;

    while (*sample >= (count = count_of(sampler, *epoch))) {
        *sample -= count;
        ++*epoch;
    }
}

dt_status dt_sampler_seek(dt_sampler *sampler, int64_t epoch, int64_t sample, dt_error *err)
{
    if (epoch < 0 || epoch > UINT32_MAX || sample < 0 || sample > count_of(sampler, epoch))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the data have no sample %lld in epoch %lld, where the checkpoint stopped; "
                       "they are not the data that it was trained on: resume with those",
                       (long long)sample, (long long)epoch);
    carry(sampler, &epoch, &sample);
    sampler->epoch = epoch;
    sampler->sample = sample;
    return DT_OK;
}

static void make_order(dt_sampler *sampler, int64_t epoch)
{
    dt_philox_key key = key_of(sampler, epoch, DRAW_ORDER);

    if (sampler->order_epoch == epoch)
        return;
    sampler->shift = shift_of(sampler, epoch);
    sampler->order_count = count_of(sampler, epoch);
    sampler->order_epoch = epoch;
    for (int64_t i = 0; i < sampler->order_count; i++)
        sampler->order[i] = i;
    for (int64_t i = sampler->order_count - 1; i > 0; i--) {
        int64_t other = (int64_t)(draw(&key, (uint64_t)i) % (uint64_t)(i + 1));
        int64_t held = sampler->order[i];

        sampler->order[i] = sampler->order[other];
        sampler->order[other] = held;
    }
}

dt_status dt_sampler_fill(dt_sampler *sampler, int32_t *inputs, int32_t *targets, int64_t first,
                          int64_t count, dt_error *err)
{
    const dt_dataset *dataset = sampler->dataset;
    dt_status st = DT_OK;
    int64_t tokens = sampler->tokens, epoch = sampler->epoch, sample = sampler->sample + first;

    DT_ASSERT(first >= 0 && count >= 0);
    for (int64_t i = 0; i < count; i++, sample++) {
        int64_t at;

        carry(sampler, &epoch, &sample);
        make_order(sampler, epoch);
        at = sampler->shift + sampler->order[sample] * tokens;
        /* Large files are not looked through when they are opened. */
        DT_TRY(dt_token_stream_check(&dataset->train, at, tokens + 1, dataset->limit, err));
        dt_token_stream_read(inputs + i * tokens, &dataset->train, at, tokens);
        dt_token_stream_read(targets + i * tokens, &dataset->train, at + 1, tokens);
    }
out:
    return st;
}

dt_status dt_sampler_advance(dt_sampler *sampler, int64_t samples, dt_error *err)
{
    int64_t epoch = sampler->epoch, sample = sampler->sample + samples;

    DT_ASSERT(samples >= 0);
    carry(sampler, &epoch, &sample);
    if (epoch > UINT32_MAX)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the run has seen the data %lld times, which is beyond what it can count",
                       (long long)epoch);
    sampler->epoch = epoch;
    sampler->sample = sample;
    return DT_OK;
}
