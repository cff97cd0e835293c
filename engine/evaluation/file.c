/* file: reads files of tasks into lines that are complete by themselves. */
#include <string.h>

#include "base/file.h"
#include "engine/evaluation/evaluation.h"
#include "engine/tokens/text_lines.h"

#define FILE_MOST       ((size_t)1 << 30)
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

typedef struct reader {
    dt_strbuf *out;
    dt_evaluation_task *task;
    json_t *defaults; /* NULL: none */
    dt_arena *arena;  /* reset for each row */
    char where[512];
} reader;

/* --- its name */

static dt_status name_task(dt_evaluation_task *out, const char *path, dt_arena *arena,
                           dt_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);

    *out = (dt_evaluation_task){.name = dt_arena_strndup(arena, name, length), .path = path};
    if (length == 0 || length > DT_EVALUATION_NAME ||
        strspn(out->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
            length)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "'%s': a task has the name of its file, and that must be of letters, "
                       "digits, '.', '_' and '-', at most %d: rename the file",
                       path, DT_EVALUATION_NAME);
    return DT_OK;
}

static dt_status check_name(const dt_evaluation_task *tasks, size_t at, dt_error *err)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(tasks[i].path, tasks[at].path) == 0)
            return DT_FAIL(err, DT_ERR_USAGE, "'%s' is given twice", tasks[i].path);
        else if (strcmp(tasks[i].name, tasks[at].name) == 0)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "'%s' and '%s' are both the task '%s': rename one of the files",
                           tasks[i].path, tasks[at].path, tasks[i].name);
    return DT_OK;
}

/* --- its rows */

static bool is_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (line[i] != ' ' && line[i] != '\t')
            return false;
    return true;
}

static dt_status parse(json_t **out, const char *line, size_t length, const char *where,
                       dt_error *err)
{
    json_error_t problem;

    *out = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
    if (*out == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: not a JSON object: %s (column %d)", where,
                       problem.text, problem.column);
    return DT_OK;
}

/* Refuses a file that has rows, but not as lines, by its beginning. */
static dt_status check_form(const char *path, const dt_strbuf *text, dt_error *err)
{
    static const struct {
        const char *begin, *is;
    } forms[] = {
        {"\x1f\x8b", "compressed: unpack it with 'gunzip'"},
        {"\x28\xb5\x2f\xfd", "compressed: unpack it with 'unzstd'"},
        {"PAR1", "a Parquet file: write its rows as a .jsonl file (docs/evaluation.md)"},
        {"\xff\xfe", "in UTF-16: convert it with 'iconv -f utf-16 -t utf-8'"},
        {"\xfe\xff", "in UTF-16: convert it with 'iconv -f utf-16 -t utf-8'"},
        {"[", "a JSON list: write an object a line, as 'jq -c .[]' does"},
    };

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (text->length >= strlen(forms[i].begin) &&
            memcmp(text->data, forms[i].begin, strlen(forms[i].begin)) == 0)
            return DT_FAIL(err, DT_ERR_USAGE, "'%s' is %s", path, forms[i].is);
    return DT_OK;
}

/* Takes the first line if it has the defaults of the rows. */
static dt_status take_defaults(bool *taken, reader *r, json_t *object, dt_error *err)
{
    json_t *defaults = json_object_get(object, "defaults");

    *taken = defaults != NULL;
    if (!*taken)
        return DT_OK;
    if (r->task->rows > 0 || r->defaults != NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: 'defaults' are allowed in the first line only",
                       r->where);
    if (!json_is_object(defaults) || json_object_size(object) != 1)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "%s: expected {\"defaults\": {...}}, with fields of the rows", r->where);
    r->defaults = json_incref(defaults);
    return DT_OK;
}

static dt_status refuse_own(const json_t *object, const char *where, dt_error *err)
{
    static const char *const own[] = {"task", "row"};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (json_object_get(object, own[i]) != NULL)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "%s: unknown field '%s': dtrun sets it from the file (a note can be in "
                           "'id')",
                           where, own[i]);
    return DT_OK;
}

static dt_status take_row(reader *r, json_t *object, int64_t line, dt_error *err)
{
    dt_evaluation_row row;
    dt_status st = DT_OK;

    DT_TRY(refuse_own(object, r->where, err));
    if (r->defaults != NULL && json_is_object(object))
        json_object_update_missing(object, r->defaults);
    st = dt_evaluation_row_read(&row, object, r->where, r->arena, err);
    if (st != DT_OK && r->defaults != NULL)
        dt_error_prefix(err, "'%.400s': with the defaults of the first line", r->task->path);
    DT_TRY(st);
    if (r->task->rows > 0 && row.kind != r->task->kind)
        DT_THROW(err, DT_ERR_USAGE,
                 "%s: this row is of kind '%s', and the rows before are of kind '%s': a file has "
                 "one task",
                 r->where, dt_evaluation_kind_name(row.kind),
                 dt_evaluation_kind_name(r->task->kind));
    r->task->kind = row.kind;
    r->task->rows++;
    json_object_set_new(object, "task", json_string(r->task->name));
    json_object_set_new(object, "row", json_integer(line));
    dt_json_write(r->out, object);
    dt_strbuf_add_char(r->out, '\n');
out:
    return st;
}

static dt_status take_line(reader *r, const char *text, size_t length, int64_t line, dt_error *err)
{
    json_t *object = NULL;
    dt_status st = DT_OK;
    bool taken;

    snprintf(r->where, sizeof(r->where), "'%.400s', line %lld", r->task->path, (long long)line);
    dt_arena_reset(r->arena);
    DT_TRY(parse(&object, text, length, r->where, err));
    DT_TRY(take_defaults(&taken, r, object, err));
    if (!taken)
        DT_TRY(take_row(r, object, line, err));
out:
    json_decref(object);
    return st;
}

static dt_status read_file(dt_strbuf *out, dt_evaluation_task *task, dt_arena *arena, dt_error *err)
{
    reader r = {.out = out, .task = task, .arena = arena};
    dt_text_lines lines;
    const char *line;
    int64_t number = 0;
    dt_status st = DT_OK;
    size_t length;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, task->path, FILE_MOST, err));
    DT_TRY(check_form(task->path, &text, err));
    lines = (dt_text_lines){text.data, text.data + text.length};
    if (text.length >= strlen(BYTE_ORDER_MARK) &&
        memcmp(text.data, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        lines.at += strlen(BYTE_ORDER_MARK);
    while (dt_text_lines_next(&line, &length, &lines)) {
        number++;
        if (!is_blank(line, length))
            DT_TRY(take_line(&r, line, length, number, err));
    }
    if (task->rows == 0)
        DT_THROW(err, DT_ERR_USAGE, "'%s' has no rows", task->path);
out:
    json_decref(r.defaults);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_evaluation_read(dt_strbuf *out, dt_evaluation_task **tasks, const char *const *paths,
                             size_t count, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_arena row;

    dt_arena_init(&row, 0);
    *tasks = dt_arena_alloc_array(arena, count, sizeof(**tasks));
    if (count > DT_EVALUATION_TASKS)
        DT_THROW(err, DT_ERR_USAGE, "%zu tasks, and at most %d are possible", count,
                 DT_EVALUATION_TASKS);
    for (size_t i = 0; i < count; i++) {
        DT_TRY(name_task(&(*tasks)[i], paths[i], arena, err));
        DT_TRY(check_name(*tasks, i, err));
        DT_TRY(read_file(out, &(*tasks)[i], &row, err));
    }
out:
    dt_arena_release(&row);
    return st;
}

dt_status dt_evaluation_check_divided(const dt_evaluation_task *task, int64_t tensor, dt_error *err)
{
    if (tensor <= 1 || task->kind != DT_EVALUATION_ANSWER)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_USAGE,
                   "'%s' has generated answers, and these cannot be combined with 'tensor' %lld in "
                   "training: evaluate the checkpoints with 'dtrun evaluate'",
                   task->path, (long long)tensor);
}
