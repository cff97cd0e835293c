/* pair_databin: reads sentence pairs from fairseq's data-bin: the ids of both languages, and the
 * position of each sentence. */
#include <stdlib.h>

#include "engine/data/mapping.h"
#include "runner/corpus/pairs_int.h"

#include "base/alloc.h"

enum { INDEX_HEAD_BYTES = 26, COUNT_AT = 18 };

typedef struct databin {
    dt_mapping ids, index;
    int64_t count;
    int32_t *sentence; /* the last sentence that was read */
    int64_t length, room;
} databin;

static uint64_t little_endian(const unsigned char *bytes, int count)
{
    uint64_t value = 0;

    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* Opens both files. dt_databin_look has already checked the header and the end of the last
 * sentence. */
static dt_status open_databin(databin *out, const char *ids, const char *index, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_mapping_open(&out->ids, ids, err));
    DT_TRY(dt_mapping_open(&out->index, index, err));
    out->count = out->index.length >= INDEX_HEAD_BYTES
                     ? (int64_t)little_endian(out->index.bytes + COUNT_AT, 8)
                     : -1;
    if (out->count < 0 || out->count > INT32_MAX ||
        out->index.length != INDEX_HEAD_BYTES + (uint64_t)out->count * 12)
        DT_THROW(err, DT_ERR_RECIPE, "'%s' is not a fairseq index: binarize the text again", index);
out:
    return st;
}

static dt_status read_sentence(databin *bin, int64_t at, int width_bytes, const char *path,
                               dt_error *err)
{
    const unsigned char *lengths = bin->index.bytes + INDEX_HEAD_BYTES,
                        *begins = lengths + bin->count * 4;
    uint64_t length = little_endian(lengths + at * 4, 4), begin = little_endian(begins + at * 8, 8);

    if (begin > bin->ids.length || length * (uint64_t)width_bytes > bin->ids.length - begin)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "'%s': its index puts sentence %lld past the end of the file; binarize the text again",
            path, (long long)at + 1);
    if ((int64_t)length > bin->room) {
        bin->room = (int64_t)length * 2;
        free(bin->sentence);
        bin->sentence = dt_malloc((size_t)bin->room * sizeof(*bin->sentence));
    }
    for (uint64_t i = 0; i < length; i++) {
        uint64_t id =
            little_endian(bin->ids.bytes + begin + i * (uint64_t)width_bytes, width_bytes);

        if (id > INT32_MAX)
            return DT_FAIL(err, DT_ERR_RECIPE, "'%s': sentence %lld has the id %llu", path,
                           (long long)at + 1, (unsigned long long)id);
        bin->sentence[i] = (int32_t)id;
    }
    bin->length = (int64_t)length;
    return DT_OK;
}

static void close_databin(databin *bin)
{
    dt_mapping_close(&bin->ids);
    dt_mapping_close(&bin->index);
    free(bin->sentence);
}

dt_status dt_pairs_read_databin(dt_pair_tally *out, const dt_pair_file *file,
                                const dt_pair_sink *sink, dt_error *err)
{
    databin bins[DT_LANGUAGES] = {{.count = 0}, {.count = 0}};
    dt_status st = DT_OK;

    for (int i = 0; i < DT_LANGUAGES; i++)
        DT_TRY(open_databin(&bins[i], file->paths[i], file->indexes[i], err));
    if (bins[0].count != bins[1].count)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' has %lld sentences and '%s' has %lld: they are not translations of each "
                 "other; binarize both again",
                 file->paths[0], (long long)bins[0].count, file->paths[1],
                 (long long)bins[1].count);
    for (int64_t at = 0; at < bins[0].count && !dt_pair_sink_is_full(sink, out); at++) {
        bool empty = false;

        for (int i = 0; i < DT_LANGUAGES; i++)
            DT_TRY(read_sentence(&bins[i], at, file->width_bytes, file->paths[i], err));
        out->lines++;
        DT_TRY(sink->add_ids(sink->context, (int32_t *[]){bins[0].sentence, bins[1].sentence},
                             (int64_t[]){bins[0].length, bins[1].length}, &empty, err));
        if (empty)
            dt_pair_tally_broken(out, file->paths[0], at + 1, "a side is empty");
        else
            out->pairs++;
    }
    out->bytes += (int64_t)(bins[0].ids.length + bins[1].ids.length);
out:
    for (int i = 0; i < DT_LANGUAGES; i++)
        close_databin(&bins[i]);
    return st;
}
