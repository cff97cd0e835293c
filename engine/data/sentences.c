#include "engine/data/sentences.h"

#include <string.h>

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
