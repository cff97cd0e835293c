/* pair_reader: reads sentence pairs of two text files, a .jsonl, .csv or .tsv file, or fairseq's data-bin,
 * and counts the pairs that were read and left out. */
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/json.h"
#include "base/memory.h"
#include "engine/data/files.h"
#include "runner/corpus/corpus.h"
#include "runner/corpus/corpus_int.h"

/* pair_tally: counts the pairs and the broken lines of all formats.
 *
 * Counts a line that is left out, with the reason.
 */
static void pair_tally_broken(dt_pair_tally *out, const char *path, int64_t line, const char *why)
{
    if (out->broken++ < DT_PAIRS_NAMED)
        dt_strbuf_add_fmt(&out->broken_words, "%s%s:%lld (%s)", out->broken > 1 ? ", " : "", path,
                          (long long)line, why);
}

/* Passes a pair to the sink and counts it. `paths`: the file of each side, or one file and NULL. Passes a
 * pair to the sink and counts it. `paths`: the file of each side, or one file and NULL. */
static dt_status pair_tally_add(dt_pair_tally *out, const dt_pair_text *pair,
                                const char *const *paths, int64_t line, const dt_pair_sink *sink,
                                dt_error *err)
{
    static const char *const sides[] = {"source", "target"};
    dt_language side = DT_SOURCE;
    bool empty = false;
    dt_status st = sink->add_text(sink->context, pair, &side, &empty, err);
    const char *path = paths[side] != NULL ? paths[side] : paths[0];

    if (st == DT_ERR_USAGE) {
        dt_error_prefix(err, "%s:%lld: the %s", path, (long long)line, sides[side]);
        if (err != NULL)
            err->code = DT_ERR_RECIPE;
        return DT_ERR_RECIPE;
    }
    if (st != DT_OK)
        return st;
    if (empty) {
        pair_tally_broken(out, path, line,
                          paths[1] != NULL    ? "it is empty"
                          : side == DT_SOURCE ? "the source is empty"
                                              : "the target is empty");
        return DT_OK;
    }
    out->pairs++;
    out->bytes += (int64_t)(pair->length[0] + pair->length[1]);
    return DT_OK;
}

/* pair_lines: reads sentence pairs with one line per pair: of two text files, or of a .jsonl file
 * with two keys. */

static int64_t count_lines(const dt_mapping *text)
{
    const unsigned char *at = text->bytes, *end = at + text->length;
    int64_t lines = 0;

    for (; at < end; lines++) {
        const unsigned char *stop = memchr(at, '\n', (size_t)(end - at));

        at = stop != NULL ? stop + 1 : end;
    }
    return lines;
}

/* Returns the line at *at, without its end, and moves *at past it. */
static const char *next_line(size_t *length, const char *text, size_t size, size_t *at)
{
    const char *line = text + *at, *stop = memchr(line, '\n', size - *at);

    *length = stop != NULL ? (size_t)(stop - line) : size - *at;
    *at += *length + (stop != NULL ? 1 : 0);
    if (*length > 0 && line[*length - 1] == '\r')
        --*length;
    return line;
}

/* Implementations of dt_pairs_read for each format; text: the content of the file with both sides. */
static dt_status pairs_read_lines(dt_pair_tally *out, const dt_pair_file *file,
                                  const dt_pair_sink *sink, dt_error *err)
{
    dt_mapping texts[DT_LANGUAGES] = {{0}, {0}};
    size_t at[DT_LANGUAGES] = {0, 0};
    int64_t lines[DT_LANGUAGES];
    dt_status st = DT_OK;

    for (int i = 0; i < DT_LANGUAGES; i++) {
        DT_TRY(dt_mapping_open(&texts[i], file->paths[i], err));
        lines[i] = count_lines(&texts[i]);
    }
    if (lines[0] != lines[1])
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' has %lld lines and '%s' %lld: line n of one must be the translation of line "
                 "n of the other",
                 file->paths[0], (long long)lines[0], file->paths[1], (long long)lines[1]);
    for (int64_t line = 1; line <= lines[0] && !dt_pair_sink_is_full(sink, out); line++) {
        dt_pair_text pair;

        for (int i = 0; i < DT_LANGUAGES; i++)
            pair.text[i] =
                next_line(&pair.length[i], (const char *)texts[i].bytes, texts[i].length, &at[i]);
        out->lines++;
        DT_TRY(pair_tally_add(out, &pair, file->paths, line, sink, err));
    }
out:
    for (int i = 0; i < DT_LANGUAGES; i++)
        dt_mapping_close(&texts[i]);
    return st;
}

static dt_status read_object(dt_pair_tally *out, const char *line, size_t length, int64_t number,
                             const dt_pair_file *file, const char *const names[],
                             const dt_pair_sink *sink, dt_error *err)
{
    json_error_t problem;
    json_t *object = json_loadb(line, length, JSON_ALLOW_NUL, &problem);
    const json_t *texts[DT_LANGUAGES];
    dt_status st = DT_OK;
    dt_pair_text pair;

    if (object == NULL) {
        pair_tally_broken(out, file->paths[0], number, problem.text);
        goto out;
    }
    for (int i = 0; i < DT_LANGUAGES; i++) {
        texts[i] = json_object_get(object, names[i]);
        if (!json_is_string(texts[i])) {
            pair_tally_broken(out, file->paths[0], number,
                              texts[i] == NULL ? "a key is missing" : "a value is not a string");
            goto out;
        }
        pair.text[i] = json_string_value(texts[i]);
        pair.length[i] = json_string_length(texts[i]);
    }
    DT_TRY(pair_tally_add(out, &pair, file->paths, number, sink, err));
out:
    json_decref(object);
    return st;
}

static bool is_blank(const char *text, size_t length)
{
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL && text[length - 1] != '\0')
        length--;
    return length == 0;
}

static dt_status pairs_read_objects(dt_pair_tally *out, const dt_mapping *text,
                                    const dt_pair_file *file, const char *const names[],
                                    const dt_pair_sink *sink, dt_error *err)
{
    dt_status st = DT_OK;
    size_t at = 0, length;

    for (int64_t number = 1; at < text->length && !dt_pair_sink_is_full(sink, out); number++) {
        const char *line = next_line(&length, (const char *)text->bytes, text->length, &at);

        if (is_blank(line, length))
            continue;
        out->lines++;
        if (dt_utf8_valid_length(line, length) < length)
            DT_THROW(err, DT_ERR_RECIPE, "%s:%lld: byte %zu of the line is not UTF-8 (0x%02x)",
                     file->paths[0], (long long)number, dt_utf8_valid_length(line, length),
                     (unsigned char)line[dt_utf8_valid_length(line, length)]);
        DT_TRY(read_object(out, line, length, number, file, names, sink, err));
    }
out:
    return st;
}

/* pair_table: reads sentence pairs from two columns of a .csv or .tsv file. */

/* Copies field `column` of a .tsv line; such a file has no quotes. Returns false if the line has
 * fewer fields. */
static bool tab_field(dt_strbuf *out, const char *line, size_t length, int64_t column)
{
    const char *end = line + length, *stop;

    for (; column >= 0; column--, line = stop + 1) {
        if (line > end)
            return false;
        stop = memchr(line, '\t', (size_t)(end - line));
        if (stop == NULL)
            stop = end;
        if (column == 0)
            dt_strbuf_add(out, line, (size_t)(stop - line));
    }
    return true;
}

static bool get_field(dt_strbuf *out, dt_pair_format format, const char *record, size_t length,
                      int64_t column)
{
    dt_strbuf_reset(out);
    return format == DT_PAIR_TSV ? tab_field(out, record, length, column)
                                 : dt_csv_field(out, record, length, column);
}

/* Returns the length of the first record, without its line end; *next: with it. */
static size_t next_record(size_t *next, dt_pair_format format, const char *text, size_t length)
{
    const char *stop = memchr(text, '\n', length);
    size_t used;

    *next = stop != NULL ? (size_t)(stop - text) + 1 : length;
    if (format == DT_PAIR_CSV)
        *next = dt_csv_record(text, length);
    used = *next;
    if (used > 0 && text[used - 1] == '\n')
        used--;
    if (used > 0 && text[used - 1] == '\r')
        used--;
    return used;
}

/* Finds the columns by name in the first record, or by number; *head: the first record has names. */
static dt_status find_columns(int64_t columns[], bool *head, const char *record, size_t length,
                              const dt_pair_file *file, const char *const names[], dt_error *err)
{
    dt_strbuf field;
    dt_status st = DT_OK;

    dt_strbuf_init(&field);
    columns[0] = columns[1] = -1;
    for (int64_t c = 0; get_field(&field, file->format, record, length, c); c++)
        for (int i = 0; i < DT_LANGUAGES; i++)
            if (columns[i] < 0 && strcmp(field.data, names[i]) == 0)
                columns[i] = c;
    *head = columns[0] >= 0 && columns[1] >= 0;
    for (int i = 0; i < DT_LANGUAGES && !*head; i++) {
        char *end;
        long number = strtol(names[i], &end, 10);

        if (*end != '\0' || number < 1 || number > 10000)
            DT_THROW(err, DT_ERR_RECIPE,
                     "'%s' has no column '%s' in its first line: set data.source and data.target "
                     "to the names of two columns, or to their numbers if the file has no header",
                     file->paths[0], columns[i] < 0 ? names[i] : names[1 - i]);
        columns[i] = number - 1;
    }
out:
    dt_strbuf_release(&field);
    return st;
}

static dt_status pairs_read_table(dt_pair_tally *out, const dt_mapping *mapping,
                                  const dt_pair_file *file, const char *const names[],
                                  const dt_pair_sink *sink, dt_error *err)
{
    const char *text = (const char *)mapping->bytes;
    size_t left = mapping->length, next, length;
    int64_t columns[DT_LANGUAGES], number = 1;
    dt_strbuf fields[DT_LANGUAGES];
    dt_status st = DT_OK;
    bool head;

    for (int i = 0; i < DT_LANGUAGES; i++)
        dt_strbuf_init(&fields[i]);
    length = next_record(&next, file->format, text, left);
    DT_TRY(find_columns(columns, &head, text, length, file, names, err));
    for (; left > 0 && !dt_pair_sink_is_full(sink, out); text += next, left -= next, number++) {
        dt_pair_text pair;

        length = next_record(&next, file->format, text, left);
        if ((number == 1 && head) || length == 0)
            continue;
        out->lines++;
        if (!get_field(&fields[0], file->format, text, length, columns[0]) ||
            !get_field(&fields[1], file->format, text, length, columns[1])) {
            pair_tally_broken(out, file->paths[0], number, "it has too few fields");
            continue;
        }
        for (int i = 0; i < DT_LANGUAGES; i++) {
            pair.text[i] = fields[i].data;
            pair.length[i] = fields[i].length;
        }
        DT_TRY(pair_tally_add(out, &pair, file->paths, number, sink, err));
    }
out:
    for (int i = 0; i < DT_LANGUAGES; i++)
        dt_strbuf_release(&fields[i]);
    return st;
}

/* pair_databin: reads sentence pairs from fairseq's data-bin: the ids of both languages, and the
 * position of each sentence. */

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

static dt_status pairs_read_databin(dt_pair_tally *out, const dt_pair_file *file,
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
            pair_tally_broken(out, file->paths[0], at + 1, "a side is empty");
        else
            out->pairs++;
    }
    out->bytes += (int64_t)(bins[0].ids.length + bins[1].ids.length);
out:
    for (int i = 0; i < DT_LANGUAGES; i++)
        close_databin(&bins[i]);
    return st;
}

dt_status dt_pairs_read(dt_pair_tally *out, const dt_pair_file *file,
                        const char *const names[DT_LANGUAGES], const dt_pair_sink *sink,
                        dt_error *err)
{
    dt_mapping text = {0};
    dt_status st = DT_OK;

    switch (file->format) {
    case DT_PAIR_TEXT:
        return pairs_read_lines(out, file, sink, err);
    case DT_PAIR_DATABIN:
        return pairs_read_databin(out, file, sink, err);
    case DT_PAIR_JSONL:
    case DT_PAIR_CSV:
    case DT_PAIR_TSV:
        break;
    }
    DT_TRY(dt_mapping_open(&text, file->paths[0], err));
    st = file->format == DT_PAIR_JSONL ? pairs_read_objects(out, &text, file, names, sink, err)
                                       : pairs_read_table(out, &text, file, names, sink, err);
out:
    dt_mapping_close(&text);
    return st;
}
