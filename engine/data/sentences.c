/* sentences: files of sentence pairs, shuffles, and the groups of pairs that become batches. */
#include "engine/data/sentences.h"

#include <stdlib.h>
#include <string.h>

#include "engine/data/data_int.h"

/* --- shuffles */

dt_philox_key dt_shuffle_key(uint64_t seed, int64_t epoch, dt_draw_kind draw)
{
    dt_philox_key key = {
        .seed = seed, .step = (uint32_t)epoch, .layer = (uint32_t)draw, .op = DT_PHILOX_SHUFFLE};
    return key;
}

void dt_shuffle(int64_t *out, int64_t count, const dt_philox_key *key)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t other = (int64_t)(dt_shuffle_draw(key, (uint64_t)i) % (uint64_t)(i + 1));
        int64_t held = out[i];

        out[i] = out[other];
        out[other] = held;
    }
}

/* --- the file */

enum { HEAD_BYTES = 64, WIDTH_AT = 32, VERSION = 1 };

static const char magic[] = "DTPAIRS";

/* --- reading */

static int64_t int64_at(const unsigned char *bytes)
{
    int64_t value;

    memcpy(&value, bytes, sizeof(value));
    return value;
}

/* Whether the starts ascend strictly, from 0 to `total`. */
static bool are_starts(const int64_t *starts, int64_t count, int64_t total)
{
    if (starts[0] != 0 || starts[count] != total)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (starts[i + 1] <= starts[i] || starts[i + 1] - starts[i] > INT32_MAX)
            return false;
    return true;
}

static dt_status lay_out(dt_sentences *out, const char *path, dt_error *err)
{
    const unsigned char *bytes = out->mapping.bytes;
    uint64_t length = out->mapping.length, ids, starts;
    int64_t totals[DT_LANGUAGES];
    int32_t width;

    if (length < HEAD_BYTES || memcmp(bytes, magic, sizeof(magic) - 1) != 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' is not a file of sentence pairs: create one with 'dtrun data prepare'",
                       path);
    if (bytes[sizeof(magic) - 1] != VERSION)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s': unsupported version %d (expected %d): prepare it again", path,
                       bytes[sizeof(magic) - 1], VERSION);
    out->count = int64_at(bytes + 8);
    totals[DT_SOURCE] = int64_at(bytes + 16);
    totals[DT_TARGET] = int64_at(bytes + 24);
    memcpy(&width, bytes + WIDTH_AT, sizeof(width));
    starts = ((uint64_t)out->count + 1) * sizeof(int64_t);
    ids = (uint64_t)totals[DT_SOURCE] + (uint64_t)totals[DT_TARGET];
    if (out->count < 0 || out->count > INT32_MAX || totals[DT_SOURCE] < 0 ||
        totals[DT_TARGET] < 0 || (width != 2 && width != 4) || ids > length ||
        length != HEAD_BYTES + 2 * starts + ids * (uint64_t)width)
        return DT_FAIL(err, DT_ERR_RECIPE, "'%s' is cut off or damaged: prepare it again", path);
    out->width_bytes = width;
    for (int i = 0; i < DT_LANGUAGES; i++)
        out->starts[i] = (const int64_t *)(const void *)(bytes + HEAD_BYTES + (uint64_t)i * starts);
    out->ids[DT_SOURCE] = bytes + HEAD_BYTES + 2 * starts;
    out->ids[DT_TARGET] = out->ids[DT_SOURCE] + totals[DT_SOURCE] * width;
    for (int i = 0; i < DT_LANGUAGES; i++)
        if (!are_starts(out->starts[i], out->count, totals[i]))
            return DT_FAIL(err, DT_ERR_RECIPE, "'%s' is damaged: prepare it again", path);
    return DT_OK;
}

dt_status dt_sentences_open(dt_sentences *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_sentences){.path = path};
    DT_TRY(dt_mapping_open(&out->mapping, path, err));
    DT_TRY(lay_out(out, path, err));
out:
    if (st != DT_OK)
        dt_sentences_close(out);
    return st;
}

void dt_sentences_close(dt_sentences *sentences)
{
    dt_mapping_close(&sentences->mapping);
    *sentences = (dt_sentences){.count = 0};
}

dt_status dt_sentence_read(int32_t *out, const dt_sentences *sentences, dt_language language,
                           int64_t pair, int64_t limit, dt_error *err)
{
    int64_t count = dt_sentence_length(sentences, language, pair);
    const unsigned char *ids =
        sentences->ids[language] + sentences->starts[language][pair] * sentences->width_bytes;

    for (int64_t i = 0; i < count; i++) {
        uint32_t id = 0;

        memcpy(&id, ids + i * sentences->width_bytes, (size_t)sentences->width_bytes);
        if ((int64_t)id >= limit)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s', pair %lld: the %s has the token %u, and the vocabulary %lld",
                           sentences->path, (long long)pair + 1,
                           language == DT_SOURCE ? "source" : "target", id, (long long)limit);
        out[i] = (int32_t)id;
    }
    return DT_OK;
}

/* --- writing */

void dt_sentences_head(dt_strbuf *out, int64_t count, int width_bytes,
                       const int64_t *const starts[DT_LANGUAGES])
{
    int64_t numbers[3] = {count, starts[DT_SOURCE][count], starts[DT_TARGET][count]};
    char head[HEAD_BYTES] = {0};
    int32_t width = width_bytes;

    memcpy(head, magic, sizeof(magic) - 1);
    head[sizeof(magic) - 1] = VERSION;
    memcpy(head + 8, numbers, sizeof(numbers));
    memcpy(head + WIDTH_AT, &width, sizeof(width));
    dt_strbuf_add(out, head, sizeof(head));
    for (int i = 0; i < DT_LANGUAGES; i++)
        dt_strbuf_add(out, starts[i], (size_t)(count + 1) * sizeof(int64_t));
}

void dt_sentences_ids(dt_strbuf *out, int width_bytes, const int32_t *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t id = (uint32_t)ids[i];

        dt_strbuf_add(out, &id, (size_t)width_bytes);
    }
}

/* --- groups of similar length */

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
