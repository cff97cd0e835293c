#include "runner/corpus/documents.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "runner/corpus/json_line.h"

static bool ends_with(const char *text, const char *tail)
{
    size_t length = strlen(text), tail_length = strlen(tail);

    return length >= tail_length && strcmp(text + length - tail_length, tail) == 0;
}

dt_corpus_kind dt_corpus_kind_of(const char *path)
{
    if (ends_with(path, ".jsonl") || ends_with(path, ".json"))
        return DT_CORPUS_JSONL;
    return ends_with(path, ".csv") ? DT_CORPUS_CSV : DT_CORPUS_TEXT;
}

bool dt_documents_too_broken(int64_t broken, int64_t lines)
{
    return broken > 10 && broken > lines / 1000;
}

static void count_broken(dt_documents *out, const char *why)
{
    if (out->broken == 0)
        snprintf(out->broken_why, sizeof(out->broken_why), "%.79s", why);
    if (out->broken < DT_BROKEN_NAMED)
        out->broken_lines[out->broken] = out->lines;
    out->broken++;
}

static dt_status add_document(dt_documents *out, const char *text, size_t length,
                              dt_document_fn *add, void *context, dt_error *err)
{
    if (length == 0)
        return DT_OK;
    out->documents++;
    out->bytes += (int64_t)length;
    return add(context, text, length, err);
}

/* --- JSON lines */

static bool is_blank(const char *text, size_t length)
{
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        length--;
    return length == 0;
}

static dt_status parse_line(dt_documents *out, const char *line, size_t length, const char *field,
                            dt_document_fn *add, void *context, dt_error *err)
{
    json_error_t problem;
    json_t *object = json_loadb(line, length, JSON_ALLOW_NUL, &problem);
    const json_t *text = json_object_get(object, field);
    dt_status st = DT_OK;

    if (object == NULL)
        count_broken(out, problem.text);
    else if (!json_is_string(text))
        count_broken(out, text == NULL ? "the field is missing" : "the field is not a string");
    else
        st =
            add_document(out, json_string_value(text), json_string_length(text), add, context, err);
    json_decref(object);
    return st;
}

static dt_status read_lines(dt_documents *out, const char *text, size_t length, const char *field,
                            dt_document_fn *add, void *context, dt_error *err)
{
    const char *end = text + length, *next;
    dt_status st = DT_OK;
    dt_strbuf value;

    dt_strbuf_init(&value);
    for (const char *line = text; line < end && st == DT_OK; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        next = stop != NULL ? stop + 1 : end;
        out->lines++;
        if (dt_json_line_text(&value, line, (size_t)(next - line), field))
            st = add_document(out, value.data, value.length, add, context, err);
        else if (!is_blank(line, (size_t)(next - line)))
            st = parse_line(out, line, (size_t)(next - line), field, add, context, err);
    }
    dt_strbuf_release(&value);
    return st;
}

/* --- csv */

size_t dt_csv_record(const char *text, size_t length)
{
    bool quoted = false;

    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (text[i] == '\n' && !quoted)
            return i + 1;
    }
    return length;
}

/* Appends the field at *at, and moves *at past its comma; false after the last field. A quote inside quotes is
 * doubled. */
static bool next_field(dt_strbuf *out, const char *text, size_t length, size_t *at)
{
    bool quoted = false;

    if (*at > length)
        return false;
    for (; *at < length; ++*at) {
        char c = text[*at];

        if (c == '"' && quoted && *at + 1 < length && text[*at + 1] == '"')
            dt_strbuf_add_char(out, text[++*at]);
        else if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            break;
        else
            dt_strbuf_add_char(out, c);
    }
    ++*at;
    return true;
}

static size_t without_break(const char *text, size_t length)
{
    if (length > 0 && text[length - 1] == '\n')
        length--;
    if (length > 0 && text[length - 1] == '\r')
        length--;
    return length;
}

int64_t dt_csv_column(const char *text, size_t length, const char *name)
{
    int64_t column = 0, found = -1;
    dt_strbuf field;
    size_t at = 0;

    dt_strbuf_init(&field);
    length = without_break(text, dt_csv_record(text, length));
    for (; found < 0 && next_field(&field, text, length, &at); column++) {
        if (strcmp(field.data, name) == 0)
            found = column;
        dt_strbuf_reset(&field);
    }
    dt_strbuf_release(&field);
    return found;
}

bool dt_csv_field(dt_strbuf *out, const char *text, size_t length, int64_t column)
{
    size_t at = 0;

    for (int64_t i = 0; i <= column; i++) {
        dt_strbuf_reset(out);
        if (!next_field(out, text, length, &at))
            return false;
    }
    return true;
}

static dt_status read_record(dt_documents *out, const char *text, size_t length, int64_t column,
                             dt_strbuf *field, dt_document_fn *add, void *context, dt_error *err)
{
    if (!dt_csv_field(field, text, length, column)) {
        count_broken(out, "it has too few fields");
        return DT_OK;
    }
    return add_document(out, field->data, field->length, add, context, err);
}

static dt_status read_records(dt_documents *out, const char *text, size_t length, int64_t column,
                              dt_document_fn *add, void *context, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf field;

    dt_strbuf_init(&field);
    while (length > 0 && st == DT_OK) {
        size_t record = dt_csv_record(text, length), inner = without_break(text, record);

        out->lines++;
        if (inner > 0)
            st = read_record(out, text, inner, column, &field, add, context, err);
        text += record;
        length -= record;
    }
    dt_strbuf_release(&field);
    return st;
}

dt_status dt_documents_read(dt_documents *out, dt_corpus_kind kind, const char *text, size_t length,
                            const char *field, int64_t column, dt_document_fn *add, void *context,
                            dt_error *err)
{
    switch (kind) {
    case DT_CORPUS_JSONL:
        return read_lines(out, text, length, field, add, context, err);
    case DT_CORPUS_CSV:
        return read_records(out, text, length, column, add, context, err);
    default:
        return add_document(out, text, length, add, context, err);
    }
}
