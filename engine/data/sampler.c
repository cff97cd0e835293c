/* sampler: selects the samples of training and of validation, and computes the number of steps. The order
 * of an epoch is a shuffle that depends only on seed and epoch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/data.h"
#include "engine/data/data_int.h"
#include "engine/data/stream.h"

/* --- training */

/* Number of possible offsets of an epoch's first sequence: T, or fewer if no sequence would be
 * left. */
static int64_t shifts(const dt_sampler *sampler)
{
    /* number of possible offsets; at least 1 */
    int64_t spare = sampler->train_tokens + 1 - sampler->ahead - sampler->tokens;

    return spare < sampler->tokens ? spare : sampler->tokens;
}

static int64_t shift_of(const dt_sampler *sampler, int64_t epoch)
{
    dt_philox_key key = dt_shuffle_key(sampler->seed, epoch, DT_DRAW_SHIFT);

    return (int64_t)(dt_shuffle_draw(&key, 0) % (uint64_t)shifts(sampler));
}

/* Number of sequences of an epoch; the last token has no target. */
static int64_t count_of(const dt_sampler *sampler, int64_t epoch)
{
    return (sampler->train_tokens - sampler->ahead - shift_of(sampler, epoch)) / sampler->tokens;
}

void dt_sampler_count(dt_sampler *out, int64_t train_tokens, int64_t tokens, int64_t ahead,
                      uint64_t seed)
{
    *out = (dt_sampler){.train_tokens = train_tokens,
                        .tokens = tokens,
                        .ahead = ahead,
                        .sample_targets = tokens,
                        .seed = seed,
                        .order_epoch = -1};
}

void dt_sampler_count_known(dt_sampler *out, int64_t samples, bool packs, uint64_t seed)
{
    dt_sampler_count(out, samples, 1, 0, seed);
    out->packed = packs;
    out->groups = !packs;
}

dt_status dt_sampler_init(dt_sampler *out, const dt_dataset *dataset, int64_t tokens, uint64_t seed,
                          dt_error *err)
{
    bool known = dataset->has_pairs || dataset->packed, mixed = dataset->mixture.count > 0;
    int64_t ahead = dataset->has_rows || dataset->has_pairs || dataset->has_chats ? 0 : 1, most;

    memset(out, 0, sizeof(*out));
    DT_ASSERT(tokens > 0);
    if (dataset->train_count < (dataset->has_pairs || dataset->has_chats ? 1 : tokens) + ahead)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "the training data have %lld tokens, fewer than one sequence of %lld and its "
            "last target; give more text, or fewer batch.tokens",
            (long long)dataset->train_count, (long long)tokens);
    if (mixed) {
        dt_sampler_count_known(out, dataset->mixture.samples, dataset->packed, seed);
        out->groups = false;
        out->sample_targets = tokens;
    } else if (known)
        dt_sampler_count_known(out,
                               dataset->packed && !dataset->has_chats ? dataset->packs.count
                                                                      : dataset->train_count,
                               dataset->packed, seed);
    else
        dt_sampler_count(out, dataset->train_count, tokens, ahead, seed);
    out->dataset = dataset;
    out->width = tokens;
    if (dataset->has_rows)
        out->sample_targets = dataset->rows.classes ? 1 : dataset->rows.outputs;
    most = (out->train_tokens - out->ahead) / out->tokens; /* number of sequences with offset 0 */
    out->mixed = mixed;
    out->order = malloc((size_t)most * sizeof(*out->order));
    if (mixed)
        out->picks = malloc((size_t)(most + dataset->mixture.most) * sizeof(*out->picks));
    if (out->order == NULL || (mixed && out->picks == NULL))
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the order of %lld %s", (long long)most,
                       dataset->has_rows    ? "rows"
                       : dataset->has_pairs ? "batches"
                                            : "sequences");
    return DT_OK;
}

void dt_sampler_release(dt_sampler *sampler)
{
    free(sampler->order);
    free(sampler->picks);
    memset(sampler, 0, sizeof(*sampler));
}

/* Normalize a position: move past the ends of epochs until `sample` is within its epoch. */
static void carry(const dt_sampler *sampler, int64_t *epoch, int64_t *sample)
{
    int64_t count;

    while (*sample >= (count = count_of(sampler, *epoch))) {
        *sample -= count;
        ++*epoch;
    }
}

/* Position where the next step starts: skips what drop leaves out. */
static void settle(const dt_sampler *sampler, int64_t *epoch, int64_t *sample)
{
    carry(sampler, epoch, sample);
    if (sampler->tail == DT_TAIL_DROP &&
        count_of(sampler, *epoch) - *sample < sampler->step_samples) {
        ++*epoch;
        *sample = 0;
    }
}

static dt_status refuse_drop(const dt_sampler *sampler, int64_t samples, int64_t step_samples,
                             dt_error *err)
{
    bool rows = sampler->ahead == 0 && !sampler->groups && !sampler->packed && !sampler->mixed;
    const char *noun = rows ? "rows" : sampler->groups ? "batches" : "sequences";
    char of[48] = "";

    if (!rows && !sampler->groups && !sampler->packed && !sampler->mixed)
        snprintf(of, sizeof(of), " of %lld tokens", (long long)sampler->tokens);
    return DT_FAIL(
        err, DT_ERR_RECIPE,
        "'data.tail: drop' would drop the whole epoch: an epoch has %lld %s%s, fewer than the %lld "
        "of a step; give more %s, smaller batches, or set 'data.tail: wrap'",
        (long long)samples, noun, of, (long long)step_samples, rows ? "rows" : "text");
}

dt_status dt_sampler_set_tail(dt_sampler *sampler, dt_tail_kind tail, int64_t step_samples,
                              dt_error *err)
{
    /* number of sequences in an epoch with the largest offset */
    int64_t fewest =
        (sampler->train_tokens + 1 - sampler->ahead - shifts(sampler)) / sampler->tokens;

    DT_ASSERT(step_samples > 0);
    if (tail == DT_TAIL_DROP && fewest < step_samples)
        return refuse_drop(sampler, fewest, step_samples, err);
    sampler->tail = tail;
    sampler->step_samples = step_samples;
    settle(sampler, &sampler->epoch, &sampler->sample);
    return DT_OK;
}

int64_t dt_sampler_epoch_samples(const dt_sampler *sampler)
{
    return count_of(sampler, sampler->epoch);
}

int64_t dt_sampler_epoch_steps(const dt_sampler *sampler, int64_t epochs, int64_t step_samples)
{
    int64_t samples = 0, steps = 0;

    DT_ASSERT(step_samples > 0);
    for (int64_t epoch = 0; epoch < epochs; epoch++) {
        int64_t count = count_of(sampler, epoch);

        samples += count;
        steps += count / step_samples;
    }
    return sampler->tail == DT_TAIL_DROP ? steps : (samples + step_samples - 1) / step_samples;
}

dt_status dt_sampler_seek(dt_sampler *sampler, int64_t epoch, int64_t sample, dt_error *err)
{
    if (epoch < 0 || epoch > UINT32_MAX || sample < 0 || sample > count_of(sampler, epoch))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the data have no sample %lld in epoch %lld, where the checkpoint stopped; "
                       "they differ from the data that it was trained on: resume with those data",
                       (long long)sample, (long long)epoch);
    settle(sampler, &epoch, &sample);
    sampler->epoch = epoch;
    sampler->sample = sample;
    return DT_OK;
}

static void make_order(dt_sampler *sampler, int64_t epoch)
{
    dt_philox_key key = dt_shuffle_key(sampler->seed, epoch, DT_DRAW_ORDER);

    if (sampler->order_epoch == epoch)
        return;
    sampler->shift = shift_of(sampler, epoch);
    sampler->order_count = count_of(sampler, epoch);
    sampler->order_epoch = epoch;
    if (sampler->mixed) {
        dt_mixture_order(sampler->order, sampler->picks, sampler->picks + sampler->order_count,
                         &sampler->dataset->mixture, sampler->seed, epoch);
        return;
    }
    dt_shuffle(sampler->order, sampler->order_count, &key);
}

/* The first token and the length of a sample of the epoch whose order is current. */
static int64_t place_of(const dt_sampler *sampler, int64_t sample, int64_t *length)
{
    int64_t at = sampler->order[sample];

    *length = sampler->width;
    if (!sampler->packed)
        return sampler->shift + at * sampler->tokens;
    *length = dt_packs_length(&sampler->dataset->packs, at);
    return sampler->dataset->packs.starts[at];
}

/* Number of end-of-document tokens in `length` tokens from token `at`. */
static int64_t count_ends(const dt_sampler *sampler, int64_t at, int64_t length)
{
    enum { AT_ONCE = 1024 };
    int32_t tokens[AT_ONCE];
    int64_t ends = 0;

    for (int64_t left = length; left > 0; left -= AT_ONCE) {
        int64_t count = left < AT_ONCE ? left : AT_ONCE;

        dt_token_stream_read(tokens, &sampler->dataset->train, at, count);
        for (int64_t t = 0; t < count; t++)
            ends += tokens[t] == sampler->dataset->document_end;
        at += count;
    }
    return ends;
}

static int64_t count_group_targets(dt_sampler *sampler, int64_t first, int64_t count)
{
    int64_t epoch = sampler->epoch, sample = sampler->sample + first, targets = 0;

    for (int64_t i = 0; i < count; i++, sample++) {
        carry(sampler, &epoch, &sample);
        make_order(sampler, epoch);
        targets += sampler->dataset->groups.targets[sampler->order[sample]];
    }
    return targets;
}

static double count_chat_targets(dt_sampler *sampler, int64_t first, int64_t count)
{
    int64_t epoch = sampler->epoch, sample = sampler->sample + first;
    double targets = 0;

    for (int64_t i = 0; i < count; i++, sample++) {
        carry(sampler, &epoch, &sample);
        make_order(sampler, epoch);
        targets += sampler->dataset->chat_rows.weights[sampler->order[sample]];
    }
    return targets;
}

/* Targets that count in a sequence. The token that ends a document has none, nor has the last
 * training token, which only a pack can contain. */
static int64_t count_targets(const dt_sampler *sampler, int64_t at, int64_t length)
{
    const dt_dataset *dataset = sampler->dataset;
    int64_t targets = length - count_ends(sampler, at, length);
    int32_t last;

    if (at + length < dt_dataset_train_end(dataset, at))
        return targets;
    dt_token_stream_read(&last, &dataset->train, at + length - 1, 1);
    return last == dataset->document_end ? targets : targets - 1;
}

double dt_sampler_valid_targets(dt_sampler *sampler, int64_t first, int64_t count)
{
    const dt_dataset *dataset = sampler->dataset;
    int64_t epoch = sampler->epoch, sample = sampler->sample + first;
    int64_t targets = 0, length, at;

    DT_ASSERT(first >= 0 && count >= 0);
    if (dataset->has_pairs)
        return (double)count_group_targets(sampler, first, count);
    if (dataset->has_chats)
        return count_chat_targets(sampler, first, count);
    if (dataset->has_rows || dataset->document_end == DT_DOCUMENTS_CROSSED)
        return (double)(count * sampler->sample_targets);
    for (int64_t i = 0; i < count; i++, sample++) {
        carry(sampler, &epoch, &sample);
        make_order(sampler, epoch);
        at = place_of(sampler, sample, &length);
        targets += count_targets(sampler, at, length);
    }
    return (double)targets;
}

dt_status dt_sampler_fill_group(dt_sampler *sampler, dt_pair_shape *shape, void *const inputs[],
                                int64_t first, dt_error *err)
{
    const dt_dataset *dataset = sampler->dataset;
    int64_t epoch = sampler->epoch, sample = sampler->sample + first;

    DT_ASSERT(first >= 0 && dataset->has_pairs);
    carry(sampler, &epoch, &sample);
    make_order(sampler, epoch);
    return dt_group_fill(shape, inputs, &dataset->groups, sampler->order[sample],
                         &dataset->pair_ids, err);
}

dt_status dt_sampler_fill(dt_sampler *sampler, void *const inputs[], int64_t first, int64_t count,
                          dt_error *err)
{
    const dt_dataset *dataset = sampler->dataset;
    int64_t epoch = sampler->epoch, sample = sampler->sample + first, length, at;
    dt_status st = DT_OK;

    DT_ASSERT(first >= 0 && count >= 0 && !dataset->has_pairs);
    for (int64_t i = 0; i < count; i++, sample++) {
        carry(sampler, &epoch, &sample);
        make_order(sampler, epoch);
        if (dataset->has_rows)
            dt_rows_copy(inputs, i, &dataset->rows, sampler->order[sample]);
        else if (dataset->has_chats)
            dt_chat_row_fill(inputs, i, &dataset->chat_rows, sampler->order[sample]);
        else {
            at = place_of(sampler, sample, &length);
            DT_TRY(dt_dataset_fill_tokens(dataset, &dataset->train, at, length,
                                          dt_dataset_train_end(dataset, at), inputs, i,
                                          sampler->width, err));
        }
    }
out:
    return st;
}

dt_status dt_sampler_advance(dt_sampler *sampler, int64_t samples, dt_error *err)
{
    int64_t epoch = sampler->epoch, sample = sampler->sample + samples;

    DT_ASSERT(samples >= 0);
    settle(sampler, &epoch, &sample);
    if (epoch > UINT32_MAX)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "too many epochs: the run has already read the data %lld times",
                       (long long)epoch);
    sampler->epoch = epoch;
    sampler->sample = sample;
    return DT_OK;
}

/* What was drawn of a part in the current epoch. */
static int64_t count_drawn(const dt_sampler *sampler, const dt_data_part *part)
{
    int64_t drawn = 0;

    for (int64_t i = 0; i < sampler->sample; i++)
        drawn += sampler->order[i] >= part->first && sampler->order[i] < part->first + part->count;
    return drawn;
}

void dt_sampler_describe_parts(dt_strbuf *out, dt_sampler *sampler)
{
    const dt_mixture *mixture = &sampler->dataset->mixture;

    if (!sampler->mixed)
        return;
    make_order(sampler, sampler->epoch);
    for (int64_t i = 0; i < mixture->count; i++) {
        const dt_data_part *part = &mixture->parts[i];
        int64_t drawn = sampler->epoch * part->quota + count_drawn(sampler, part);

        dt_strbuf_add_fmt(out, "%s%s %lld%s (%.4g epochs)", i > 0 ? ", " : "", part->name,
                          (long long)drawn, i == 0 ? " sequences" : "",
                          (double)drawn / (double)part->samples);
    }
}

/* --- validation */

/* The last token is only used as a target. */
int64_t dt_validation_count(const dt_dataset *dataset, int64_t tokens)
{
    int64_t inputs =
        dataset->has_rows || dataset->has_pairs ? dataset->valid_count : dataset->valid_count - 1;

    if (dataset->has_pairs)
        return inputs;
    if (dataset->has_chats)
        return dataset->valid_count;
    if (dataset->packed)
        return dataset->valid_packs.count;
    return inputs > 0 ? (inputs + tokens - 1) / tokens : 0;
}

static void fill_row(const dt_dataset *dataset, int64_t index, void *const inputs[], int64_t place)
{
    if (index < 0)
        dt_rows_blank(inputs, place, dataset->valid_rows);
    else
        dt_rows_copy(inputs, place, dataset->valid_rows, dataset->valid_start + index);
}

dt_status dt_validation_fill(const dt_dataset *dataset, int64_t tokens, int64_t index,
                             void *const inputs[], int64_t place, dt_error *err)
{
    int64_t end = dataset->valid_start + dataset->valid_count, start, have;

    DT_ASSERT(!dataset->has_pairs);
    if (dataset->has_rows) {
        fill_row(dataset, index, inputs, place);
        return DT_OK;
    }
    if (dataset->has_chats) {
        dt_chat_row_fill(inputs, place, &dataset->valid_chat_rows, index);
        return DT_OK;
    }
    if (index < 0) {
        start = have = 0;
    } else if (dataset->packed) {
        start = dataset->valid_packs.starts[index];
        have = dt_packs_length(&dataset->valid_packs, index);
    } else {
        start = dataset->valid_start + index * tokens;
        have = end - 1 - start < tokens ? end - 1 - start : tokens;
        DT_ASSERT(have > 0);
    }
    return dt_dataset_fill_tokens(dataset, dataset->valid_stream, start, have, end, inputs, place,
                                  tokens, err);
}

dt_status dt_validation_fill_group(const dt_dataset *dataset, int64_t index, dt_pair_shape *shape,
                                   void *const inputs[], dt_error *err)
{
    if (index >= 0)
        return dt_group_fill(shape, inputs, &dataset->valid_groups, index, &dataset->pair_ids, err);
    dt_group_blank(shape, inputs, &dataset->pair_ids);
    return DT_OK;
}

/* --- steps from epochs */

/* Steps from position `start` to the end of the epochs; negative if `start` is past it. */
static int64_t rest_steps(const dt_sampler *sampler, int64_t epochs, int64_t step_samples,
                          const dt_budget_place *start)
{
    /* samples seen, counted as steps of one sample */
    int64_t seen = dt_sampler_epoch_steps(sampler, start->epoch, 1) + start->sample;
    int64_t left;

    if (sampler->tail == DT_TAIL_DROP) {
        /* samples left in this epoch */
        left = dt_sampler_epoch_steps(sampler, start->epoch + 1, 1) - seen;
        return left / step_samples + dt_sampler_epoch_steps(sampler, epochs, step_samples) -
               dt_sampler_epoch_steps(sampler, start->epoch + 1, step_samples);
    }
    left = dt_sampler_epoch_steps(sampler, epochs, 1) - seen;
    return (left > 0 ? left + step_samples - 1 : left) / step_samples;
}

static int64_t epochs_steps(const dt_sampler *sampler, int64_t epochs, int64_t step_samples,
                            const dt_budget_place *start)
{
    int64_t rest;

    if (start == NULL)
        return dt_sampler_epoch_steps(sampler, epochs, step_samples);
    rest = rest_steps(sampler, epochs, step_samples, start);
    return start->step + (rest > 0 ? rest : 0);
}

int64_t dt_budget_steps(const dt_recipe *recipe, const dt_sampler *sampler, int64_t step_samples,
                        const dt_budget_place *start)
{
    int64_t steps = recipe->schedule.steps, by_epochs;

    if (recipe->schedule.epochs == 0)
        return steps;
    by_epochs = epochs_steps(sampler, recipe->schedule.epochs, step_samples, start);
    return steps > 0 && steps < by_epochs ? steps : by_epochs;
}

/* --- pairs of answers */

static dt_chat_rows *pair_rows(const dt_dataset *dataset, bool validation)
{
    dt_dataset *own = (dt_dataset *)(uintptr_t)dataset;

    return validation ? &own->valid_chat_rows : &own->chat_rows;
}

int64_t dt_dataset_pair_rows(const dt_dataset *dataset, bool validation)
{
    return pair_rows(dataset, validation)->count;
}

void dt_dataset_fill_pair_row(const dt_dataset *dataset, bool validation, int64_t row,
                              void *const inputs[], int64_t place)
{
    dt_chat_row_fill(inputs, place, pair_rows(dataset, validation), row);
}

void dt_dataset_set_reference(dt_dataset *dataset, bool validation, float *reference)
{
    dt_chat_rows *rows = pair_rows(dataset, validation);

    free(rows->reference);
    rows->reference = reference;
}
