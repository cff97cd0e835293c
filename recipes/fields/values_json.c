/* values_json: converts a field's value from JSON into the record and back. */
#include <stdio.h>

#include "recipes/fields/values_int.h"

static const char *json_kind(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

/* Sets an integer. One that a double cannot represent exactly is outside of every range. */
static dt_status set_int(void *record, const dt_field *field, int64_t value, dt_status code,
                         dt_error *err)
{
    char shown[32];

    if ((double)value >= field->low && (double)value <= field->high) {
        *(int64_t *)dt_value_place(record, field) = value;
        return DT_OK;
    }
    snprintf(shown, sizeof(shown), "%lld", (long long)value);
    return dt_value_refuse(field, shown, code, err);
}

static dt_status set_json_list(void *record, const dt_field *field, const json_t *value,
                               dt_arena *arena, dt_error *err)
{
    size_t count = json_array_size(value);
    const char **items = dt_arena_alloc_array(arena, count + 1, sizeof(*items));

    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(value, i));

        if (text == NULL)
            return dt_value_refuse(field, "a list of other things", DT_ERR_CORRUPT, err);
        items[i] = dt_arena_strdup(arena, text);
    }
    return dt_value_set_list(record, field, items, (int64_t)count, DT_ERR_CORRUPT, err);
}

static dt_status set_json_item(void *item, const dt_field *field, const json_t *value,
                               dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    if (!json_is_object(value))
        return dt_value_refuse(field, "a list of other things", DT_ERR_CORRUPT, err);
    for (size_t i = 0; i < field->items->count; i++) {
        const dt_field *of_item = &field->items->fields[i];
        const json_t *given = json_object_get(value, of_item->path);

        if (given != NULL)
            DT_TRY(dt_field_set_json(item, of_item, given, arena, err));
        else if (of_item->fallback == NULL)
            DT_THROW(err, DT_ERR_CORRUPT, "'%s' is missing", of_item->path);
    }
out:
    if (st != DT_OK)
        dt_error_prefix(err, "'%s'", field->path);
    return st;
}

static dt_status set_json_maps(void *record, const dt_field *field, const json_t *value,
                               dt_arena *arena, dt_error *err)
{
    int64_t count = (int64_t)json_array_size(value);
    dt_map_list maps;
    dt_status st = dt_value_check_count(field, count, DT_ERR_CORRUPT, err);

    if (st != DT_OK)
        return st;
    dt_field_new_items(&maps, field, count, arena);
    for (int64_t i = 0; i < count; i++)
        DT_TRY(set_json_item(dt_field_item(field, &maps, i), field,
                             json_array_get(value, (size_t)i), arena, err));
    *(dt_map_list *)dt_value_place(record, field) = maps;
out:
    return st;
}

dt_status dt_field_set_json(void *record, const dt_field *field, const json_t *value,
                            dt_arena *arena, dt_error *err)
{
    const char *text;

    switch (field->type) {
    case DT_FIELD_INT:
        if (json_is_integer(value))
            return set_int(record, field, json_integer_value(value), DT_ERR_CORRUPT, err);
        break;
    case DT_FIELD_BOOL:
        if (json_is_boolean(value))
            return dt_value_set_bool(record, field, json_is_true(value) ? "true" : "false",
                                     DT_ERR_CORRUPT, err);
        break;
    case DT_FIELD_NUMBER:
    case DT_FIELD_DURATION:
        if (json_is_number(value))
            return dt_value_set_number(record, field, json_number_value(value), DT_ERR_CORRUPT,
                                       err);
        break;
    case DT_FIELD_CHOICE:
        if (json_is_string(value))
            return dt_value_set_choice(record, field, json_string_value(value), DT_ERR_UNSUPPORTED,
                                       err);
        break;
    case DT_FIELD_STRING:
        if (!json_is_string(value))
            break;
        text = dt_arena_strdup(arena, json_string_value(value));
        return dt_value_set_string(record, field, text, DT_ERR_UNSUPPORTED, err);
    case DT_FIELD_STRINGS:
        if (json_is_array(value))
            return set_json_list(record, field, value, arena, err);
        break;
    case DT_FIELD_MAPS:
        if (json_is_array(value))
            return set_json_maps(record, field, value, arena, err);
        break;
    }
    return dt_value_refuse(field, json_kind(value), DT_ERR_CORRUPT, err);
}

static const void *place_const(const void *record, const dt_field *field)
{
    return (const char *)record + field->offset;
}

static json_t *maps_to_json(const dt_map_list *maps, const dt_field *field)
{
    json_t *out = json_array();

    for (int64_t i = 0; i < maps->count; i++) {
        json_t *item = json_object();

        for (size_t k = 0; k < field->items->count; k++)
            json_object_set_new(
                item, field->items->fields[k].path,
                dt_field_to_json(dt_field_item(field, maps, i), &field->items->fields[k]));
        json_array_append_new(out, item);
    }
    return out;
}

json_t *dt_field_to_json(const void *record, const dt_field *field)
{
    const void *at = place_const(record, field);
    const dt_string_list *list = at;
    json_t *array;

    switch (field->type) {
    case DT_FIELD_INT:
        return json_integer(*(const int64_t *)at);
    case DT_FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case DT_FIELD_NUMBER:
    case DT_FIELD_DURATION:
        return json_real(*(const double *)at);
    case DT_FIELD_CHOICE:
        return json_string(field->choices[*(const int *)at]);
    case DT_FIELD_STRING:
        return json_string(*(const char *const *)at);
    case DT_FIELD_MAPS:
        return maps_to_json(at, field);
    case DT_FIELD_STRINGS:
        break;
    }
    array = json_array();
    for (int64_t i = 0; i < list->count; i++)
        json_array_append_new(array, json_string(list->items[i]));
    return array;
}
