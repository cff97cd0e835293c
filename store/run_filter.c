/* run_filter: parses filters of runs by value, and applies them. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "store/run_value.h"

static const struct {
    const char *text;
    dt_filter_kind kind;
} operators[] = {
    {"!=", DT_FILTER_UNEQUAL}, {"<=", DT_FILTER_LESS_OR_EQUAL}, {">=", DT_FILTER_MORE_OR_EQUAL},
    {"==", DT_FILTER_EQUAL},   {"=", DT_FILTER_EQUAL},          {"<", DT_FILTER_LESS},
    {">", DT_FILTER_MORE}};

static const char *trimmed(const char *text, size_t length, dt_arena *arena)
{
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return dt_arena_printf(arena, "%.*s", (int)length, text);
}

dt_status dt_run_filter_parse(dt_run_filter *out, const char *text, dt_arena *arena, dt_error *err)
{
    size_t key = strcspn(text, "!<>="), i = 0, count = sizeof(operators) / sizeof(operators[0]);
    const char *value;
    char *end;

    *out = (dt_run_filter){0};
    while (i < count && strncmp(text + key, operators[i].text, strlen(operators[i].text)) != 0)
        i++;
    if (i == count || key == 0 || text[key] == '\0')
        return DT_FAIL(err, DT_ERR_USAGE,
                       "unexpected argument '%s': a filter is a key, one of = != < <= > >=, and a "
                       "value, as in 'loss<2'",
                       text);
    value = text + key + strlen(operators[i].text);
    out->kind = operators[i].kind;
    out->key = trimmed(text, key, arena);
    out->value = trimmed(value, strlen(value), arena);
    out->number = strtod(out->value, &end);
    out->is_number = out->value[0] != '\0' && *end == '\0';
    if (!out->is_number && out->kind != DT_FILTER_EQUAL && out->kind != DT_FILTER_UNEQUAL)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s': '%s' is not a number", text, out->value);
    return DT_OK;
}

static bool compares(dt_filter_kind kind, double a, double b)
{
    switch (kind) {
    case DT_FILTER_LESS:
        return a < b;
    case DT_FILTER_LESS_OR_EQUAL:
        return a <= b;
    case DT_FILTER_MORE:
        return a > b;
    case DT_FILTER_MORE_OR_EQUAL:
        return a >= b;
    case DT_FILTER_EQUAL:
        return a == b;
    default:
        return a != b;
    }
}

bool dt_run_filter_passes(const dt_run_filter *filter, const dt_run_value *value)
{
    if (!value->there)
        return false;
    if (filter->is_number && value->is_number)
        return compares(filter->kind, value->number, filter->number);
    if (filter->kind == DT_FILTER_EQUAL)
        return fnmatch(filter->value, value->text, 0) == 0;
    return filter->kind == DT_FILTER_UNEQUAL && fnmatch(filter->value, value->text, 0) != 0;
}
