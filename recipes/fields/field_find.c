#include "recipes/fields/field_find.h"

#include <string.h>

const dt_field *dt_field_find(const char *path)
{
    for (size_t i = 0; i < dt_fields_count; i++)
        if (dt_fields[i].path[0] == path[0] && strcmp(dt_fields[i].path, path) == 0)
            return &dt_fields[i];
    return NULL;
}

static bool is_alias(const dt_field *field, const char *path)
{
    const char *key = path;
    size_t length;

    if (field->aliases == NULL)
        return false;
    length = dt_field_group_length(field);
    if (length != 0 && strncmp(path, field->path, length + 1) == 0)
        key += length + 1;
    for (size_t i = 0; field->aliases[i] != NULL; i++)
        if (strcmp(field->aliases[i], key) == 0)
            return true;
    return false;
}

const char *dt_field_unalias(const char *path)
{
    for (size_t i = 0; i < dt_fields_count; i++)
        if (is_alias(&dt_fields[i], path))
            return dt_fields[i].path;
    return path;
}

size_t dt_field_group_length(const dt_field *field)
{
    const char *dot = strrchr(field->path, '.');

    return dot != NULL ? (size_t)(dot - field->path) : 0;
}

bool dt_field_in_group(const dt_field *field, const char *group)
{
    size_t length = dt_field_group_length(field);

    return length != 0 && strlen(group) == length && memcmp(group, field->path, length) == 0;
}

bool dt_field_below(const dt_field *field, const char *map)
{
    size_t length = strlen(map);

    return length == 0 || (strncmp(field->path, map, length) == 0 && field->path[length] == '.');
}

bool dt_field_is_map(const char *path)
{
    for (size_t i = 0; path[0] != '\0' && i < dt_fields_count; i++)
        if (dt_field_below(&dt_fields[i], path))
            return true;
    return false;
}

const dt_field *dt_field_find_item(const dt_field_table *items, const char *key)
{
    for (size_t i = 0; i < items->count; i++)
        if (strcmp(items->fields[i].path, key) == 0)
            return &items->fields[i];
    return NULL;
}

/* --- descriptions of valid values --- */

void dt_field_range(dt_strbuf *out, const dt_field *field)
{
    if (field->type != DT_FIELD_INT && field->type != DT_FIELD_NUMBER &&
        field->type != DT_FIELD_DURATION)
        return;
    if (field->low_open)
        dt_strbuf_add_fmt(out, "above %.16g, up to %.16g", field->low, field->high);
    else
        dt_strbuf_add_fmt(out, "%.16g to %s%.16g", field->low, field->high_open ? "below " : "",
                          field->high);
    if (field->type == DT_FIELD_DURATION)
        dt_strbuf_add_str(out, " seconds");
    if (field->unit != NULL)
        dt_strbuf_add_fmt(out, " %s", field->unit);
}

void dt_field_expected(dt_strbuf *out, const dt_field *field)
{
    switch (field->type) {
    case DT_FIELD_INT:
        dt_strbuf_add_str(out, "a whole number, ");
        break;
    case DT_FIELD_NUMBER:
        dt_strbuf_add_str(out, "a number, ");
        break;
    case DT_FIELD_BOOL:
        dt_strbuf_add_str(out, "'true' or 'false'");
        break;
    case DT_FIELD_DURATION:
        dt_strbuf_add_str(out, "seconds, or a time like '90s', '10m', '2h' or '1d', ");
        break;
    case DT_FIELD_STRINGS:
        dt_strbuf_add_fmt(out, "a list of text, %.16g to %.16g items", field->low, field->high);
        break;
    case DT_FIELD_MAPS:
        dt_strbuf_add_fmt(out, "a list of maps, %.16g to %.16g, of", field->low, field->high);
        for (size_t i = 0; i < field->items->count; i++)
            dt_strbuf_add_fmt(out, "%s %s", i != 0 ? "," : "", field->items->fields[i].path);
        break;
    case DT_FIELD_STRING:
    case DT_FIELD_CHOICE:
        if (field->choices == NULL)
            dt_strbuf_add_str(out, "text");
        else if (field->choices[1] != NULL)
            dt_strbuf_add_str(out, "one of ");
        for (size_t i = 0; field->choices != NULL && field->choices[i] != NULL; i++)
            dt_strbuf_add_fmt(out, "%s'%s'", i != 0 ? ", " : "", field->choices[i]);
    }
    dt_field_range(out, field);
    if (field->zero_word != NULL)
        dt_strbuf_add_fmt(out, ", or '%s' for 0", field->zero_word);
    if (field->count_of != NULL)
        dt_strbuf_add_fmt(out, " (%s)", field->count_of);
}
