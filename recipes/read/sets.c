/* sets: applies one `--set a.b=value` (recipes/read/reading.h).
 *
 * The value is YAML if it begins like a list, a map or a quoted text, else plain text, so that globs and
 * colons need no quotes in addition to the shell's. */
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/read/paths.h"
#include "recipes/read/reading.h"
#include "recipes/read/suggest.h"

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
        return dt_reading_apply_item(reading, item.field, item.index, item.key, node);
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
