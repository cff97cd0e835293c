/* reading_item: sets one item of a list, or one name of a map of names, for --set and sweeps
 * (recipes/read/reading.h). */
#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/read/reading.h"
#include "recipes/read/references.h"

/* Replaces the list of text by a copy with the item. */
static dt_status set_text_item(dt_reading *reading, const dt_field *field, int64_t index,
                               dt_yaml_node *node)
{
    const dt_string_list *old =
        (const dt_string_list *)((const char *)reading->recipe + field->offset);
    int64_t count = index < old->count ? old->count : index + 1;
    const char **items = dt_arena_alloc_array(reading->arena, (size_t)count, sizeof(*items));
    dt_status st = DT_OK;

    for (int64_t i = 0; i < old->count; i++)
        items[i] = old->items[i];
    DT_TRY(dt_reading_text_item(&items[index], reading, field, node));
    st = dt_field_set_list(reading->recipe, field, items, count, reading->err);
    if (st != DT_OK)
        dt_text_mark_prefix(reading->err, &node->mark);
out:
    return st;
}

static dt_status set_map_item(dt_reading *reading, const dt_field *field, int64_t index,
                              const char *key, const dt_yaml_node *node)
{
    const dt_map_list *list = (const dt_map_list *)((const char *)reading->recipe + field->offset);
    const dt_field *of_item = key != NULL ? dt_field_find_item(field->items, key) : NULL;
    dt_strbuf text;

    if (of_item != NULL)
        return dt_reading_value(reading, dt_field_item(field, list, index), of_item, node);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "to set an item of '%s', name one of its keys:", field->path);
    for (size_t i = 0; i < field->items->count; i++)
        dt_strbuf_add_fmt(&text, "%s %s", i > 0 ? "," : "", field->items->fields[i].path);
    return dt_reading_refuse(reading, &node->mark, &text);
}

static dt_status set_item(dt_reading *reading, const dt_field *field, int64_t index,
                          const char *key, dt_yaml_node *node)
{
    bool maps = field->type == DT_FIELD_MAPS;
    int64_t count =
        ((const dt_string_list *)((const char *)reading->recipe + field->offset))->count;
    dt_strbuf text;

    if (maps)
        count = ((const dt_map_list *)((const char *)reading->recipe + field->offset))->count;
    if (index < count + (maps ? 0 : 1) && (maps || key == NULL))
        return maps ? set_map_item(reading, field, index, key, node)
                    : set_text_item(reading, field, index, node);
    dt_strbuf_init(&text);
    if (key != NULL && !maps)
        dt_strbuf_add_fmt(&text, "items of '%s' are text: nothing comes after ']'", field->path);
    else
        dt_strbuf_add_fmt(&text, "'%s' has %lld item%s, the first is [0]%s", field->path,
                          (long long)count, count == 1 ? "" : "s",
                          maps ? "" : "; the next number appends an item");
    return dt_reading_refuse(reading, &node->mark, &text);
}

dt_status dt_reading_apply_item(dt_reading *reading, const dt_field *field, int64_t index,
                                const char *key, dt_yaml_node *node)
{
    size_t row = (size_t)(field - dt_fields);
    const char *value;
    dt_status st = DT_OK;

    if (reading->troubled[row])
        return DT_OK; /* its error is already reported */
    DT_TRY(dt_references_fill(reading, node));
    DT_TRY(set_item(reading, field, index, key, node));
    value =
        dt_arena_printf(reading->arena, "[%lld]%s%s = %s", (long long)index, key != NULL ? "." : "",
                        key != NULL ? key : "", dt_origin_value(field, node, reading->arena));
    dt_origins_add(reading->origins, field, value, &node->mark, NULL, reading->arena);
    reading->field[row] = node->mark;
    reading->node[row] = node;
out:
    return st;
}

/* --- names of `env` and `args` */

const dt_field *dt_reading_assignment(const char **name, const char *path)
{
    size_t length = strcspn(path, ".");

    *name = path + length + 1;
    for (size_t i = 0; path[length] == '.' && path[length + 1] != '\0' && i < dt_fields_count; i++)
        if (dt_fields[i].assignments && strlen(dt_fields[i].path) == length &&
            strncmp(dt_fields[i].path, path, length) == 0)
            return &dt_fields[i];
    return NULL;
}

dt_status dt_reading_apply_assignment(dt_reading *reading, const dt_field *field, const char *name,
                                      dt_yaml_node *node)
{
    const dt_string_list *old =
        (const dt_string_list *)((const char *)reading->recipe + field->offset);
    const char **items =
        dt_arena_alloc_array(reading->arena, (size_t)old->count + 1, sizeof(*items));
    size_t row = (size_t)(field - dt_fields), length = strlen(name);
    int64_t at = 0, count = old->count;
    dt_status st = DT_OK;
    const char *value;

    if (reading->troubled[row])
        return DT_OK; /* its error is already reported */
    DT_TRY(field->keeps_references ? dt_references_check(reading, node)
                                   : dt_references_fill(reading, node));
    DT_TRY(dt_reading_text_item(&value, reading, field, node));
    for (int64_t i = 0; i < count; i++)
        items[i] = old->items[i];
    while (at < count && (strncmp(items[at], name, length) != 0 || items[at][length] != '='))
        at++;
    items[at] = dt_arena_printf(reading->arena, "%s=%s", name, value);
    count += at == count;
    st = dt_field_set_list(reading->recipe, field, items, count, reading->err);
    if (st != DT_OK)
        dt_text_mark_prefix(reading->err, &node->mark);
    DT_TRY(st);
    dt_origins_add(reading->origins, field,
                   dt_arena_printf(reading->arena, ".%s = %s", name,
                                   dt_origin_value(field, node, reading->arena)),
                   &node->mark, NULL, reading->arena);
    reading->field[row] = node->mark;
    reading->node[row] = node;
out:
    return st;
}
