/* convert: reads files of benchmarks, .jsonl and .csv, and writes the rows of a task. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "engine/tokens/text_lines.h"
#include "runner/benchmarks/benchmarks.h"
#include "runner/corpus/corpus.h"

#define FILE_MOST ((size_t)1 << 30)

enum { COLUMNS = 6 }; /* of a .csv: the question, four choices, the answer */

typedef struct converter {
    dt_strbuf *out;
    dt_converted *counts;
    int form;
    dt_jinja *prompt;
    dt_arena arena; /* reset for each row */
    const char *path;
    char where[512];
} converter;

static void name_place(converter *c, int64_t line)
{
    snprintf(c->where, sizeof(c->where), "'%.400s', line %lld", c->path, (long long)line);
}

static dt_status take_row(converter *c, json_t *row, dt_error *err)
{
    json_t *made = NULL;
    dt_status st;

    dt_arena_reset(&c->arena);
    st = dt_benchmark_row(&made, c->counts, c->form, c->prompt, row, c->where, &c->arena, err);
    if (st == DT_OK) {
        dt_json_write(c->out, made);
        dt_strbuf_add_char(c->out, '\n');
    }
    json_decref(made);
    return st;
}

/* --- .jsonl */

static dt_status take_line(converter *c, const char *line, size_t length, dt_error *err)
{
    json_error_t problem;
    json_t *row = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
    dt_status st;

    if (row == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: not a JSON object: %s (column %d)", c->where,
                       problem.text, problem.column);
    st = take_row(c, row, err);
    json_decref(row);
    return st;
}

static dt_status take_lines(converter *c, const dt_strbuf *text, dt_error *err)
{
    dt_text_lines lines = {text->data, text->data + text->length};
    dt_status st = DT_OK;
    const char *line;
    size_t length;

    for (int64_t i = 1; st == DT_OK && dt_text_lines_next(&line, &length, &lines); i++) {
        name_place(c, i);
        if (strspn(line, " \t") < length)
            st = take_line(c, line, length, err);
    }
    return st;
}

/* --- .csv */

/* Sets the subject of a file named SUBJECT_test.csv, SUBJECT_val.csv or SUBJECT_dev.csv. */
static void add_subject(json_t *row, const char *path)
{
    static const char *const ends[] = {"_test.csv", "_val.csv", "_dev.csv"};
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (length > strlen(ends[i]) && strcmp(name + length - strlen(ends[i]), ends[i]) == 0)
            json_object_set_new(row, "subject", json_stringn(name, length - strlen(ends[i])));
}

static dt_status take_record(converter *c, const char *text, size_t length, dt_error *err)
{
    json_t *row = json_object(), *choices = json_array(), *value;
    dt_status st = DT_OK;
    dt_strbuf field;

    dt_strbuf_init(&field);
    json_object_set_new(row, "choices", choices);
    if (dt_csv_field(&field, text, length, COLUMNS))
        DT_THROW(err, DT_ERR_USAGE, "%s: more than %d fields (expected question,A,B,C,D,answer)",
                 c->where, COLUMNS);
    for (int64_t i = 0; i < COLUMNS; i++) {
        if (!dt_csv_field(&field, text, length, i))
            DT_THROW(err, DT_ERR_USAGE, "%s: %lld fields (expected question,A,B,C,D,answer)",
                     c->where, (long long)i);
        value = json_stringn(field.length > 0 ? field.data : "", field.length);
        if (value == NULL)
            DT_THROW(err, DT_ERR_USAGE, "%s: field %lld is not UTF-8", c->where, (long long)i + 1);
        if (i > 0 && i < COLUMNS - 1)
            json_array_append_new(choices, value);
        else
            json_object_set_new(row, i == 0 ? "question" : "answer", value);
    }
    add_subject(row, c->path);
    DT_TRY(take_row(c, row, err));
out:
    dt_strbuf_release(&field);
    json_decref(row);
    return st;
}

static dt_status take_records(converter *c, const dt_strbuf *text, dt_error *err)
{
    static const char head[] = "question,A,B,C,D,answer";
    size_t at = 0, record, length;
    dt_status st = DT_OK;
    int64_t line = 1;

    for (; st == DT_OK && at < text->length; at += record) {
        record = dt_csv_record(text->data + at, text->length - at);
        length = record;
        while (length > 0 && strchr("\r\n", text->data[at + length - 1]) != NULL)
            length--;
        name_place(c, line);
        if (length > 0 &&
            !(at == 0 && length == sizeof(head) - 1 && memcmp(text->data, head, length) == 0))
            st = take_record(c, text->data + at, length, err);
        for (size_t i = 0; i < record; i++)
            line += text->data[at + i] == '\n';
    }
    return st;
}

/* --- files */

static dt_status take_file(converter *c, dt_error *err)
{
    bool csv = dt_corpus_kind_of(c->path) == DT_CORPUS_CSV;
    int64_t before = c->counts->rows;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (csv && !dt_benchmark_has_csv(c->form))
        DT_THROW(err, DT_ERR_USAGE, "'%s': files of %s are .jsonl", c->path,
                 dt_benchmark_names[c->form]);
    DT_TRY(dt_file_read(&text, c->path, FILE_MOST, err));
    if (text.length >= 4 && memcmp(text.data, "PAR1", 4) == 0)
        DT_THROW(err, DT_ERR_USAGE,
                 "'%s' is a Parquet file (expected .jsonl): pandas converts it by "
                 "read_parquet(FILE).to_json(OUTPUT, orient='records', lines=True)",
                 c->path);
    DT_TRY(csv ? take_records(c, &text, err) : take_lines(c, &text, err));
    if (c->counts->rows == before)
        DT_THROW(err, DT_ERR_USAGE, "'%s' has no rows", c->path);
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_benchmark_convert(dt_strbuf *out, dt_converted *counts, int form,
                               const char *const *paths, size_t count, dt_error *err)
{
    const char *defaults = dt_benchmark_defaults(form);
    converter c = {.out = out, .counts = counts, .form = form};
    dt_status st = DT_OK;

    *counts = (dt_converted){.rows = 0};
    dt_arena_init(&c.arena, 0);
    DT_TRY(dt_benchmark_template(&c.prompt, form, err));
    if (defaults != NULL)
        dt_strbuf_add_fmt(out, "{\"defaults\":%s}\n", defaults);
    for (size_t i = 0; i < count; i++) {
        c.path = paths[i];
        DT_TRY(take_file(&c, err));
    }
out:
    dt_jinja_free(c.prompt);
    dt_arena_release(&c.arena);
    return st;
}
