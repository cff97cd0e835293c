/* pair_lines: reads sentence pairs with one line per pair: of two text files, or of a .jsonl file
 * with two keys. */
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "engine/data/mapping.h"
#include "runner/corpus/pairs_int.h"

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

dt_status dt_pairs_read_lines(dt_pair_tally *out, const dt_pair_file *file,
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
        DT_TRY(dt_pair_tally_add(out, &pair, file->paths, line, sink, err));
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
        dt_pair_tally_broken(out, file->paths[0], number, problem.text);
        goto out;
    }
    for (int i = 0; i < DT_LANGUAGES; i++) {
        texts[i] = json_object_get(object, names[i]);
        if (!json_is_string(texts[i])) {
            dt_pair_tally_broken(out, file->paths[0], number,
                                 texts[i] == NULL ? "a key is missing" : "a value is not a string");
            goto out;
        }
        pair.text[i] = json_string_value(texts[i]);
        pair.length[i] = json_string_length(texts[i]);
    }
    DT_TRY(dt_pair_tally_add(out, &pair, file->paths, number, sink, err));
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

dt_status dt_pairs_read_objects(dt_pair_tally *out, const dt_mapping *text,
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
