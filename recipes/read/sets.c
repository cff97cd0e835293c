/* sets: applies one `--set a.b=value` (recipes/read/reading.h). The value is YAML if it begins like a list,
 * a map or a quoted text, else plain text, so that globs and colons need no quotes in addition to the
 * shell's. */
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/read/read_int.h"
#include "recipes/read/reading.h"

/* --- one item of a list, or one name of a map of names, for --set and sweeps */

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

/* Sets one item of a list field, or, if `key` is not NULL, a field of an item that is a map. An index equal
 * to the number of items appends a text item. */
static dt_status reading_apply_item(dt_reading *reading, const dt_field *field, int64_t index,
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

/* --- one --set */

static dt_status refuse_path(const dt_reading *reading, const char *path)
{
    char found[DT_SUGGEST_SIZE];
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, "unknown key ");
    dt_text_show_word(&text, path);
    if (dt_suggest_hint(path) != NULL)
        dt_strbuf_add_fmt(&text, " (in a recipe: %s)", dt_suggest_hint(path));
    else if (dt_suggest_field(found, "", path) != NULL)
        dt_strbuf_add_fmt(&text, " (did you mean '%s'?)", found);
    DT_FAIL(reading->err, DT_ERR_RECIPE, "%s", text.data);
    dt_strbuf_release(&text);
    return DT_ERR_RECIPE;
}

static dt_status parse_value(dt_yaml_node **out, dt_reading *reading, const char *text,
                             const dt_text_mark *mark)
{
    dt_status st = DT_OK;

    if (text[0] != '\0' && strchr("[{\"'", text[0]) != NULL) {
        DT_TRY(dt_tree_parse(out, text, mark, reading->arena, reading->err));
    } else {
        DT_TRY(dt_text_check(text, strlen(text), mark, reading->err));
        *out = dt_tree_scalar(text, mark, reading->arena);
    }
out:
    return st;
}

/* "data.train[1]" or "data.mixture[0].weight": the field, the index and the key of an item. */
typedef struct item_path {
    const dt_field *field;
    int64_t index;
    const char *key; /* NULL: the whole item */
} item_path;

static dt_status parse_item(item_path *out, const dt_reading *reading, const char *path,
                            const dt_text_mark *mark)
{
    const char *bracket = strchr(path, '['), *digits = bracket + 1;
    size_t length = strspn(digits, "0123456789");
    const char *list = dt_arena_strndup(reading->arena, path, (size_t)(bracket - path));
    const char *after = digits + length + 1;
    dt_status st = DT_OK;

    out->field = dt_field_find(dt_field_unalias(list));
    if (length == 0 || length > 6 || digits[length] != ']' || (*after != '\0' && *after != '.'))
        DT_FAIL(reading->err, DT_ERR_RECIPE,
                "to set an item of a list, write 'data.train[0]=more.txt'");
    else if (out->field == NULL)
        st = refuse_path(reading, list);
    else if (out->field->type != DT_FIELD_STRINGS && out->field->type != DT_FIELD_MAPS)
        DT_FAIL(reading->err, DT_ERR_RECIPE, "'%s' is not a list: remove the brackets", list);
    if (reading->err->code != DT_OK) {
        st = DT_ERR_RECIPE;
        dt_text_mark_prefix(reading->err, mark);
        return st;
    }
    out->index = strtoll(digits, NULL, 10);
    out->key = *after == '.' ? after + 1 : NULL;
    return DT_OK;
}

/* Applies a value to a path: YAML or plain text. Relative paths in it start at the current folder. */
static dt_status apply_path(dt_reading *reading, const char *path, const char *value,
                            const dt_text_mark *mark)
{
    dt_status st = DT_OK;
    dt_yaml_node *node;
    item_path item = {0};
    const dt_field *field;
    const char *name;

    if (strchr(path, '[') != NULL) {
        DT_TRY(parse_item(&item, reading, path, mark));
        DT_TRY(parse_value(&node, reading, value, mark));
        return reading_apply_item(reading, item.field, item.index, item.key, node);
    }
    field = dt_reading_assignment(&name, path);
    if (field != NULL) {
        DT_TRY(parse_value(&node, reading, value, mark));
        return dt_reading_apply_assignment(reading, field, name, node);
    }
    path = dt_field_unalias(path);
    if (path[0] == '\0' || (dt_field_find(path) == NULL && !dt_field_is_map(path))) {
        st = refuse_path(reading, path);
        dt_text_mark_prefix(reading->err, mark);
        return st;
    }
    DT_TRY(parse_value(&node, reading, value, mark));
    DT_TRY(dt_reading_apply(reading, path, mark, node));
out:
    return st;
}

dt_status dt_reading_set(dt_reading *reading, const char *set)
{
    const char *equals = strchr(set, '='), *folder = reading->folder;
    dt_arena *arena = reading->arena;
    dt_text_mark mark = {NULL, 0, 0};
    dt_status st = DT_OK;
    const char *path, *value;
    dt_strbuf shown;

    path = dt_arena_strndup(arena, set, equals != NULL ? (size_t)(equals - set) : 0);
    /* a URL may contain a secret: only the path is shown */
    dt_strbuf_init(&shown);
    dt_text_show(&shown, strstr(set, "://") != NULL ? path : set);
    mark.source = dt_arena_printf(arena, "--set %.*s", (int)shown.length - 2, shown.data + 1);
    dt_strbuf_release(&shown);
    value = dt_arena_strdup(arena, equals != NULL ? equals + 1 : "");
    if (equals == NULL)
        return DT_FAIL(reading->err, DT_ERR_RECIPE,
                       "%s: expected KEY=VALUE, such as 'optimizer.lr=1e-3'", mark.source);
    DT_TRY(dt_path_current(&reading->folder, arena, reading->err));
    DT_TRY(apply_path(reading, path, value, &mark));
out:
    reading->folder = folder;
    return st;
}
