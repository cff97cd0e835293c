#include "engine/data/groups.h"

#include <stdlib.h>
#include <string.h>

#include "engine/data/shuffle.h"

/* --- making groups */

static int64_t longer(const dt_sentences *sentences, int64_t pair)
{
    int64_t source = dt_sentence_length(sentences, DT_SOURCE, pair);
    int64_t target = dt_sentence_length(sentences, DT_TARGET, pair);

    return source > target ? source : target;
}

/* Sort keys, from the least significant one. */
typedef enum sort_key { BY_TARGET, BY_SOURCE, BY_LENGTH, KEYS } sort_key;

static int64_t key_of(const dt_sentences *sentences, int64_t pair, sort_key key)
{
    if (key == BY_LENGTH)
        return longer(sentences, pair);
    return dt_sentence_length(sentences, key == BY_SOURCE ? DT_SOURCE : DT_TARGET, pair);
}

/* A stable counting sort. places: (longest + 2). */
static void sort(int64_t *out, const int64_t *in, int64_t count, const dt_sentences *sentences,
                 sort_key key, int64_t *places, int64_t longest)
{
    memset(places, 0, (size_t)(longest + 2) * sizeof(*places));
    for (int64_t i = 0; i < count; i++)
        places[key_of(sentences, in[i], key) + 1]++;
    for (int64_t i = 0; i <= longest; i++)
        places[i + 1] += places[i];
    for (int64_t i = 0; i < count; i++)
        out[places[key_of(sentences, in[i], key)]++] = in[i];
}

/* Select the pairs that are not too long, in a random order. */
static void choose(dt_groups *out, int64_t first, int64_t count, int64_t longest, int64_t *drawn,
                   uint64_t seed)
{
    dt_philox_key key = dt_shuffle_key(seed, 0, DT_DRAW_TIES);

    out->first_dropped = -1;
    dt_shuffle(drawn, count, &key);
    for (int64_t i = 0; i < count; i++) {
        int64_t pair = first + drawn[i];

        if (longer(out->sentences, pair) <= longest) {
            out->pairs[out->kept++] = pair;
            continue;
        }
        if (out->dropped++ == 0 || pair < out->first_dropped)
            out->first_dropped = pair;
    }
}

/* Cut the sorted pairs into groups. The last pair of a group is its longest. */
static void cut(dt_groups *out, int64_t max_tokens)
{
    int64_t start = 0;

    for (int64_t i = 0; i < out->kept; i++) {
        if (i > start && (i + 1 - start) * longer(out->sentences, out->pairs[i]) > max_tokens)
            start = i;
        if (i == start) {
            out->starts[out->count] = start;
            out->targets[out->count++] = 0;
        }
        out->targets[out->count - 1] +=
            dt_sentence_length(out->sentences, DT_TARGET, out->pairs[i]);
    }
    out->starts[out->count] = out->kept;
}

dt_status dt_groups_make(dt_groups *out, const dt_sentences *sentences, int64_t first,
                         int64_t count, const dt_group_limits *limits, uint64_t seed, dt_error *err)
{
    int64_t longest = limits->longest < limits->max_tokens ? limits->longest : limits->max_tokens;
    int64_t *drawn = calloc((size_t)count + 1, sizeof(*drawn)), *held;
    int64_t *places = calloc((size_t)longest + 2, sizeof(*places));
    dt_status st = DT_OK;

    *out = (dt_groups){.sentences = sentences,
                       .pairs = calloc((size_t)count + 1, sizeof(*out->pairs)),
                       .starts = calloc((size_t)count + 1, sizeof(*out->starts)),
                       .targets = calloc((size_t)count + 1, sizeof(*out->targets))};
    if (drawn == NULL || places == NULL || out->pairs == NULL || out->starts == NULL ||
        out->targets == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to sort %lld sentence pairs", (long long)count);
    choose(out, first, count, longest, drawn, seed);
    for (sort_key key = BY_TARGET; key < KEYS; key++) {
        sort(drawn, out->pairs, out->kept, sentences, key, places, longest);
        held = out->pairs;
        out->pairs = drawn;
        drawn = held;
    }
    cut(out, limits->max_tokens);
out:
    free(drawn);
    free(places);
    if (st != DT_OK)
        dt_groups_release(out);
    return st;
}

void dt_groups_release(dt_groups *groups)
{
    free(groups->pairs);
    free(groups->starts);
    free(groups->targets);
    *groups = (dt_groups){.count = 0};
}

/* --- a batch */

static void pad(int32_t *row, int64_t from, int64_t to, int32_t id)
{
    for (int64_t i = from; i < to; i++)
        row[i] = id;
}

dt_status dt_group_fill(dt_pair_shape *shape, void *const inputs[], const dt_groups *groups,
                        int64_t group, const dt_pair_ids *ids, dt_error *err)
{
    const dt_sentences *sentences = groups->sentences;
    const int64_t *pairs = groups->pairs + groups->starts[group];
    dt_status st = DT_OK;

    *shape = (dt_pair_shape){.samples = groups->starts[group + 1] - groups->starts[group]};
    for (int64_t b = 0; b < shape->samples; b++) {
        int64_t source = dt_sentence_length(sentences, DT_SOURCE, pairs[b]);
        int64_t target = dt_sentence_length(sentences, DT_TARGET, pairs[b]);

        shape->source = source > shape->source ? source : shape->source;
        shape->target = target > shape->target ? target : shape->target;
    }
    for (int64_t b = 0; b < shape->samples; b++) {
        int64_t source = dt_sentence_length(sentences, DT_SOURCE, pairs[b]);
        int64_t target = dt_sentence_length(sentences, DT_TARGET, pairs[b]);
        int32_t *from = (int32_t *)inputs[0] + b * shape->source;
        int32_t *previous = (int32_t *)inputs[1] + b * shape->target;
        int32_t *targets = (int32_t *)inputs[2] + b * shape->target;

        DT_TRY(dt_sentence_read(from, sentences, DT_SOURCE, pairs[b], ids->source_limit, err));
        DT_TRY(dt_sentence_read(targets, sentences, DT_TARGET, pairs[b], ids->target_limit, err));
        previous[0] = ids->end;
        memcpy(previous + 1, targets, (size_t)(target - 1) * sizeof(*previous));
        pad(from, source, shape->source, ids->pad);
        pad(previous, target, shape->target, ids->pad);
        pad(targets, target, shape->target, -1);
    }
out:
    return st;
}

void dt_group_blank(dt_pair_shape *shape, void *const inputs[], const dt_pair_ids *ids)
{
    *shape = (dt_pair_shape){1, 1, 1};
    *(int32_t *)inputs[0] = ids->end;
    *(int32_t *)inputs[1] = ids->end;
    *(int32_t *)inputs[2] = -1;
}
