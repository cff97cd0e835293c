/* rows: reads a row of a task, by one table of its fields. */
#include <string.h>

#include "engine/evaluation/evaluation.h"

enum { TOKENS_MOST = 1 << 20, CHOICES_MOST = 1000, TOKENS_USUAL = 256 };

typedef enum field_type {
    TYPE_TEXT,  /* may be empty */
    TYPE_TEXTS, /* a text, or a list of texts, none of them empty */
    TYPE_RIGHT, /* the index of a choice, or a list of indices */
    TYPE_COUNT, /* a whole number from 1 */
    TYPE_FLAG,
    TYPE_REGEX,
    TYPE_REGEXES,
    TYPE_ANY
} field_type;

typedef struct field {
    const char *name;
    unsigned kinds; /* bits of dt_evaluation_kind */
    field_type type;
    bool required;
    size_t at; /* of its member in dt_evaluation_row */
} field;

#define CHOICE     (1u << DT_EVALUATION_CHOICE)
#define ANSWER     (1u << DT_EVALUATION_ANSWER)
#define TEXT       (1u << DT_EVALUATION_TEXT)
#define AT(member) offsetof(dt_evaluation_row, member)
#define NOT_READ   ((size_t)-1)

static const field fields[] = {
    {"prompt", CHOICE | ANSWER, TYPE_TEXT, true, AT(text)},
    {"choices", CHOICE, TYPE_TEXTS, true, AT(choices)},
    {"answer", CHOICE, TYPE_RIGHT, true, AT(right)},
    {"delimiter", CHOICE, TYPE_TEXT, false, AT(delimiter)},
    {"answer", ANSWER, TYPE_TEXTS, true, AT(answers)},
    {"until", ANSWER, TYPE_TEXTS, false, AT(until)},
    {"tokens", ANSWER, TYPE_COUNT, false, AT(tokens)},
    {"extract", ANSWER, TYPE_REGEX, false, AT(compare.extract)},
    {"extract_last", ANSWER, TYPE_FLAG, false, AT(compare.extract_last)},
    {"remove", ANSWER, TYPE_REGEXES, false, AT(compare.remove)},
    {"ignore_case", ANSWER, TYPE_FLAG, false, AT(compare.ignore_case)},
    {"ignore_punctuation", ANSWER, TYPE_FLAG, false, AT(compare.ignore_punctuation)},
    {"text", TEXT, TYPE_TEXT, true, AT(text)},
    {"id", CHOICE | ANSWER | TEXT, TYPE_ANY, false, NOT_READ},
    {"task", CHOICE | ANSWER | TEXT, TYPE_TEXT, false, AT(task)},
    {"row", CHOICE | ANSWER | TEXT, TYPE_COUNT, false, AT(number)},
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

const char *dt_evaluation_kind_name(dt_evaluation_kind kind)
{
    static const char *const names[] = {"choice", "answer", "text"};

    return names[kind];
}

/* --- values */

static dt_status read_texts(dt_evaluation_texts *out, const json_t *value, const char *name,
                            const char *where, dt_arena *arena, dt_error *err)
{
    size_t count = json_is_array(value) ? json_array_size(value) : 1;

    out->items = dt_arena_alloc_array(arena, count, sizeof(out->items[0]));
    out->count = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;

        out->items[i] = json_string_value(item);
        if (out->items[i] == NULL)
            return DT_FAIL(err, DT_ERR_USAGE, "%s: '%s': expected text, or a list of texts", where,
                           name);
        if (out->items[i][0] == '\0')
            return DT_FAIL(err, DT_ERR_USAGE, "%s: '%s': text %zu of %zu is empty", where, name,
                           i + 1, count);
    }
    return DT_OK;
}

static dt_status check_expressions(const dt_evaluation_texts *texts, const char *name,
                                   const char *where, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < texts->count && st == DT_OK; i++)
        st = dt_evaluation_check_expression(texts->items[i], err);
    if (st != DT_OK)
        dt_error_prefix(err, "%s: '%s'", where, name);
    return st;
}

static dt_status read_right(dt_evaluation_row *out, const json_t *value, const char *where,
                            dt_arena *arena, dt_error *err)
{
    size_t count = json_is_array(value) ? json_array_size(value) : 1;

    out->right = dt_arena_alloc_array(arena, count, sizeof(out->right[0]));
    out->right_count = count;
    if (count == 0)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: 'answer' is an empty list", where);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;

        if (!json_is_integer(item))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "%s: 'answer': expected the index of the right choice, from 0", where);
        out->right[i] = json_integer_value(item);
        if (out->right[i] < 0 || out->right[i] >= (int64_t)out->choices.count)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "%s: 'answer' is %lld, and the indices of the %zu choices are 0 to %zu",
                           where, (long long)out->right[i], out->choices.count,
                           out->choices.count - 1);
    }
    return DT_OK;
}

static dt_status read_count(int64_t *out, const json_t *value, const char *name, const char *where,
                            dt_error *err)
{
    *out = json_integer_value(value);
    if (!json_is_integer(value) || *out < 1 || *out > TOKENS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: '%s': expected a whole number, 1 to %d", where, name,
                       TOKENS_MOST);
    return DT_OK;
}

static dt_status read_text(const char **out, const json_t *value, const char *name,
                           const char *where, dt_error *err)
{
    *out = json_string_value(value);
    return *out != NULL ? DT_OK
                        : DT_FAIL(err, DT_ERR_USAGE, "%s: '%s': expected text", where, name);
}

static dt_status read_expression(const char **out, const json_t *value, const char *name,
                                 const char *where, dt_error *err)
{
    dt_evaluation_texts one = {out, 1};
    dt_status st = read_text(out, value, name, where, err);

    return st == DT_OK ? check_expressions(&one, name, where, err) : st;
}

static dt_status read_field(dt_evaluation_row *out, const field *f, const json_t *value,
                            const char *where, dt_arena *arena, dt_error *err)
{
    void *member = f->at == NOT_READ ? NULL : (char *)out + f->at;
    dt_status st = DT_OK;

    switch (f->type) {
    case TYPE_TEXT:
        return read_text(member, value, f->name, where, err);
    case TYPE_TEXTS:
        return read_texts(member, value, f->name, where, arena, err);
    case TYPE_RIGHT:
        return read_right(out, value, where, arena, err);
    case TYPE_COUNT:
        return read_count(member, value, f->name, where, err);
    case TYPE_FLAG:
        if (!json_is_boolean(value))
            return DT_FAIL(err, DT_ERR_USAGE, "%s: '%s': expected true or false", where, f->name);
        *(bool *)member = json_is_true(value);
        return DT_OK;
    case TYPE_REGEX:
        return read_expression(member, value, f->name, where, err);
    case TYPE_REGEXES:
        st = read_texts(member, value, f->name, where, arena, err);
        return st == DT_OK ? check_expressions(member, f->name, where, err) : st;
    case TYPE_ANY:
        break;
    }
    return DT_OK;
}

/* --- a row */

static bool has(const json_t *object, const char *key)
{
    return json_object_get(object, key) != NULL;
}

static dt_status find_kind(dt_evaluation_kind *out, const json_t *object, const char *where,
                           dt_error *err)
{
    if (!json_is_object(object))
        return DT_FAIL(err, DT_ERR_USAGE, "%s: expected a JSON object", where);
    if (has(object, "choices"))
        *out = DT_EVALUATION_CHOICE;
    else if (has(object, "prompt"))
        *out = DT_EVALUATION_ANSWER;
    else if (has(object, "text"))
        *out = DT_EVALUATION_TEXT;
    else
        return DT_FAIL(err, DT_ERR_USAGE,
                       "%s: expected 'prompt' with 'choices', 'prompt' with 'answer', or 'text' "
                       "(docs/evaluation.md)",
                       where);
    return DT_OK;
}

static const field *find_field(const char *name, dt_evaluation_kind kind)
{
    for (size_t i = 0; i < FIELDS; i++)
        if ((fields[i].kinds & 1u << kind) != 0 && strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

/* A misspelt field would change what is measured. */
static dt_status check_names(const json_t *object, dt_evaluation_kind kind, const char *where,
                             dt_error *err)
{
    json_t *members = (json_t *)object; /* jansson iterates over it without changing it */
    dt_strbuf known;
    json_t *value;
    const char *name;
    dt_status st = DT_OK;

    json_object_foreach(members, name, value) {
        if (find_field(name, kind) != NULL)
            continue;
        dt_strbuf_init(&known);
        for (size_t i = 0; i < FIELDS; i++)
            if ((fields[i].kinds & 1u << kind) != 0 && strcmp(fields[i].name, "task") != 0 &&
                strcmp(fields[i].name, "row") != 0)
                dt_strbuf_add_fmt(&known, "%s'%s'", known.length > 0 ? ", " : "", fields[i].name);
        st = DT_FAIL(err, DT_ERR_USAGE, "%s: unknown field '%.60s' (expected %s)", where, name,
                     known.data);
        dt_strbuf_release(&known);
        break;
    }
    return st;
}

static dt_status check_choices(const dt_evaluation_row *row, const char *where, dt_error *err)
{
    if (row->choices.count < 2 || row->choices.count > CHOICES_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: 'choices' has %zu texts (expected 2 to %d)", where,
                       row->choices.count, CHOICES_MOST);
    return DT_OK;
}

dt_status dt_evaluation_row_read(dt_evaluation_row *out, const json_t *object, const char *where,
                                 dt_arena *arena, dt_error *err)
{
    static const char *usual_end[] = {"\n\n"};
    dt_status st = DT_OK;

    *out = (dt_evaluation_row){.task = "",
                               .delimiter = " ",
                               .until = {usual_end, 1},
                               .tokens = TOKENS_USUAL,
                               .compare.extract = ""};
    DT_TRY(find_kind(&out->kind, object, where, err));
    DT_TRY(check_names(object, out->kind, where, err));
    for (size_t i = 0; i < FIELDS; i++) {
        const json_t *value = json_object_get(object, fields[i].name);

        if ((fields[i].kinds & 1u << out->kind) == 0)
            continue;
        if (value != NULL)
            DT_TRY(read_field(out, &fields[i], value, where, arena, err));
        else if (fields[i].required)
            DT_THROW(err, DT_ERR_USAGE, "%s: '%s' is missing", where, fields[i].name);
        if (fields[i].type == TYPE_TEXTS && fields[i].at == AT(choices))
            DT_TRY(check_choices(out, where, err));
    }
    if (out->kind == DT_EVALUATION_ANSWER && out->answers.count == 0)
        DT_THROW(err, DT_ERR_USAGE, "%s: 'answer' is an empty list", where);
    if (out->kind == DT_EVALUATION_TEXT && out->text[0] == '\0')
        DT_THROW(err, DT_ERR_USAGE, "%s: 'text' is empty", where);
out:
    return st;
}
