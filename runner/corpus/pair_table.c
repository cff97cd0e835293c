/* pair_table: reads sentence pairs from two columns of a .csv or .tsv file. */
#include <stdlib.h>
#include <string.h>

#include "engine/data/mapping.h"
#include "runner/corpus/documents.h"
#include "runner/corpus/pairs_int.h"

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

dt_status dt_pairs_read_table(dt_pair_tally *out, const dt_mapping *mapping,
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
            dt_pair_tally_broken(out, file->paths[0], number, "it has too few fields");
            continue;
        }
        for (int i = 0; i < DT_LANGUAGES; i++) {
            pair.text[i] = fields[i].data;
            pair.length[i] = fields[i].length;
        }
        DT_TRY(dt_pair_tally_add(out, &pair, file->paths, number, sink, err));
    }
out:
    for (int i = 0; i < DT_LANGUAGES; i++)
        dt_strbuf_release(&fields[i]);
    return st;
}
