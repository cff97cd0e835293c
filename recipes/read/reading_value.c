/* reading_value: reads the value of one field from its node (recipes/read/reading.h). */
#include <stdio.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/read/read_int.h"
#include "recipes/read/reading.h"

static dt_status refuse_kind(const dt_reading *reading, const dt_field *field,
                             const dt_yaml_node *node, const char *remedy)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "'%s' is %s: expected ", field->path, dt_yaml_kind_name(node));
    dt_field_expected(&text, field);
    dt_strbuf_add_str(&text, remedy);
    if (node->kind == DT_YAML_MAP && node->first != NULL && node->first->next == NULL &&
        dt_yaml_node_is_null(node->first)) /* {args.lr}, which YAML takes for a map */
        dt_strbuf_add_fmt(&text, " (a text with braces needs quotes: \"{%s}\")",
                          node->first->key->text);
    return dt_reading_refuse(reading, &node->mark, &text);
}

/* Converts {host: gpu-a, gpus: 4} to the text "gpu-a gpus=4" of recipes/fields/nodes.h. */
static dt_status read_node_map(const char **out, dt_reading *reading, const dt_field *field,
                               const dt_yaml_node *node)
{
    const char *host = NULL;
    dt_strbuf shares;
    dt_status st = DT_OK;

    dt_strbuf_init(&shares);
    for (const dt_yaml_node *entry = node->first; entry != NULL; entry = entry->next) {
        const char *key = entry->key->text;

        for (const dt_yaml_node *before = node->first; before != entry; before = before->next)
            if (strcmp(before->key->text, key) == 0)
                DT_TRY(dt_reading_refuse_twice(reading, &entry->key->mark, "duplicate key", key,
                                               &before->key->mark));
        if (entry->kind != DT_YAML_SCALAR)
            DT_TRY(refuse_kind(reading, field, entry, ""));
        if (strcmp(key, "host") == 0)
            host = entry->text;
        else if (strcmp(key, "gpus") == 0 || strcmp(key, "ranks") == 0 ||
                 strcmp(key, "first_gpu") == 0)
            dt_strbuf_add_fmt(&shares, " %s=%s", key, entry->text);
        else
            DT_TRY(refuse_kind(reading, field, entry->key,
                               " of names or of maps with the keys host, gpus, first_gpu, ranks"));
    }
    if (host == NULL)
        DT_TRY(refuse_kind(reading, field, node, ", or maps with the key 'host'"));
    *out = dt_arena_printf(reading->arena, "%s%s", host, shares.data);
out:
    dt_strbuf_release(&shares);
    return st;
}

static bool is_word(const dt_field *field, const char *text)
{
    for (const char *const *word = field->words; word != NULL && *word != NULL; word++)
        if (strcmp(*word, text) == 0)
            return true;
    return false;
}

/* Reads one item of a list; file names become absolute. */
dt_status dt_reading_text_item(const char **out, dt_reading *reading, const dt_field *field,
                               const dt_yaml_node *node)
{
    dt_status st = DT_OK;

    if (dt_yaml_node_is_null(node))
        return dt_reading_refuse_nothing(reading, field->path, node);
    if (node->kind == DT_YAML_MAP && field == dt_field_find("nodes"))
        return read_node_map(out, reading, field, node);
    if (node->kind == DT_YAML_MAP && field == dt_field_find("data.train"))
        return refuse_kind(reading, field, node, " (parts with weights are 'data.mixture')");
    if (node->kind != DT_YAML_SCALAR)
        return refuse_kind(reading, field, node, "");
    *out = node->text;
    if (field->paths && node->text[0] != '\0' && strstr(node->text, "://") == NULL &&
        !is_word(field, node->text) &&
        strncmp(node->text, DT_WEIGHTS_RUN, strlen(DT_WEIGHTS_RUN)) != 0) {
        st = dt_path_resolve(out, node->text, reading->folder, reading->arena, reading->err);
        if (st != DT_OK)
            dt_text_mark_prefix(reading->err, &node->mark);
    }
    return st;
}

/* Counts items; anything but a list counts as a list of one. */
static int64_t count_items(const dt_yaml_node *node)
{
    int64_t count = node->kind == DT_YAML_LIST ? 0 : 1;

    for (const dt_yaml_node *item = node->first; node->kind == DT_YAML_LIST && item != NULL;
         item = item->next)
        count++;
    return count;
}

static dt_status read_list(dt_reading *reading, void *record, const dt_field *field,
                           const dt_yaml_node *node)
{
    const dt_yaml_node *first = node->kind == DT_YAML_LIST ? node->first : node;
    int64_t count = count_items(node);
    dt_status st = DT_OK;
    const char **items;

    items = dt_arena_alloc_array(reading->arena, (size_t)count + 1, sizeof(*items));
    for (int64_t i = 0; i < count; i++, first = first->next)
        DT_TRY(dt_reading_text_item(&items[i], reading, field, first));
    st = dt_field_set_list(record, field, items, count, reading->err);
    if (st != DT_OK)
        dt_text_mark_prefix(reading->err, &node->mark);
out:
    return st;
}

/* Reads {NAME: value} as a list of "NAME=value". */
static dt_status read_assignments(dt_reading *reading, void *record, const dt_field *field,
                                  const dt_yaml_node *map)
{
    dt_status st = DT_OK;
    int64_t count = 0;
    const char **items;

    for (const dt_yaml_node *entry = map->first; entry != NULL; entry = entry->next)
        count++;
    items = dt_arena_alloc_array(reading->arena, (size_t)count + 1, sizeof(*items));
    count = 0;
    for (const dt_yaml_node *entry = map->first; entry != NULL; entry = entry->next) {
        for (const dt_yaml_node *before = map->first; before != entry; before = before->next)
            if (strcmp(before->key->text, entry->key->text) == 0)
                return dt_reading_refuse_twice(reading, &entry->key->mark, "duplicate key",
                                               entry->key->text, &before->key->mark);
        if (dt_yaml_node_is_null(entry))
            return dt_reading_refuse_nothing(reading, entry->key->text, entry);
        if (entry->kind != DT_YAML_SCALAR)
            return refuse_kind(reading, field, entry, " or a map of text");
        items[count++] = dt_arena_printf(reading->arena, "%s=%s", entry->key->text, entry->text);
    }
    st = dt_field_set_list(record, field, items, count, reading->err);
    if (st != DT_OK)
        dt_text_mark_prefix(reading->err, &map->mark);
    return st;
}

/* Returns whether the text would be a number, or true or false, without its quotes. */
static bool is_bare(const char *text)
{
    double number;

    return dt_text_number(&number, text) || strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

static dt_status read_scalar(dt_reading *reading, void *record, const dt_field *field,
                             const dt_yaml_node *node)
{
    bool number = field->type == DT_FIELD_INT || field->type == DT_FIELD_NUMBER ||
                  field->type == DT_FIELD_BOOL;
    const char *text = node->text;
    dt_status st;

    if (node->kind != DT_YAML_SCALAR)
        return refuse_kind(reading, field, node, "");
    if (number && !node->plain && is_bare(text))
        return refuse_kind(reading, field, node, " (remove the quotes)");
    if (field->paths)
        DT_TRY(dt_reading_text_item(&text, reading, field, node));
    st = dt_field_set_text(record, field, text, reading->err);
    if (st != DT_OK)
        dt_text_mark_prefix(reading->err, &node->mark);
out:
    return st;
}

/* --- lists of maps --- */

static dt_status refuse_item_key(const dt_reading *reading, const dt_field *field,
                                 const dt_yaml_node *key)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, "unknown key ");
    dt_text_show_word(&text, key->text);
    dt_strbuf_add_fmt(&text, " in an item of '%s' (known here: ", field->path);
    for (size_t i = 0; i < field->items->count; i++)
        dt_strbuf_add_fmt(&text, "%s%s", i != 0 ? ", " : "", field->items->fields[i].path);
    dt_strbuf_add_char(&text, ')');
    return dt_reading_refuse(reading, &key->mark, &text);
}

static dt_status check_item(const dt_reading *reading, const dt_field *field,
                            const dt_yaml_node *node)
{
    for (size_t i = 0; i < field->items->count; i++) {
        const dt_field *of_item = &field->items->fields[i];
        const dt_yaml_node *entry = node->first;
        dt_strbuf text;

        while (entry != NULL && strcmp(entry->key->text, of_item->path) != 0)
            entry = entry->next;
        if (entry != NULL || of_item->fallback != NULL)
            continue;
        dt_strbuf_init(&text);
        dt_strbuf_add_fmt(&text, "'%s' is missing in an item of '%s' (%s)", of_item->path,
                          field->path, of_item->help);
        return dt_reading_refuse(reading, &node->mark, &text);
    }
    return DT_OK;
}

static dt_status read_map(dt_reading *reading, void *item, const dt_field *field,
                          const dt_yaml_node *node)
{
    dt_status st = DT_OK;

    if (dt_yaml_node_is_null(node))
        return dt_reading_refuse_nothing(reading, field->path, node);
    if (node->kind != DT_YAML_MAP)
        return refuse_kind(reading, field, node, "");
    for (const dt_yaml_node *entry = node->first; entry != NULL; entry = entry->next) {
        const dt_field *of_item = dt_field_find_item(field->items, entry->key->text);

        for (const dt_yaml_node *before = node->first; before != entry; before = before->next)
            if (strcmp(before->key->text, entry->key->text) == 0)
                return dt_reading_refuse_twice(reading, &entry->key->mark, "duplicate key",
                                               entry->key->text, &before->key->mark);
        if (of_item == NULL)
            return refuse_item_key(reading, field, entry->key);
        DT_TRY(dt_reading_value(reading, item, of_item, entry));
    }
    DT_TRY(check_item(reading, field, node));
out:
    return st;
}

static dt_status read_maps(dt_reading *reading, void *record, const dt_field *field,
                           const dt_yaml_node *node)
{
    const dt_yaml_node *next = node->kind == DT_YAML_LIST ? node->first : node;
    dt_status st = DT_OK;
    dt_map_list maps;

    dt_field_new_items(&maps, field, count_items(node), reading->arena);
    for (int64_t i = 0; i < maps.count; i++, next = next->next)
        DT_TRY(read_map(reading, dt_field_item(field, &maps, i), field, next));
    st = dt_field_set_maps(record, field, &maps, reading->err);
    if (st != DT_OK)
        dt_text_mark_prefix(reading->err, &node->mark);
out:
    return st;
}

dt_status dt_reading_value(dt_reading *reading, void *record, const dt_field *field,
                           const dt_yaml_node *node)
{
    if (dt_yaml_node_is_null(node))
        return dt_reading_refuse_nothing(reading, field->path, node);
    if (field->type == DT_FIELD_MAPS)
        return read_maps(reading, record, field, node);
    if (field->assignments && node->kind == DT_YAML_MAP)
        return read_assignments(reading, record, field, node);
    if (field->type == DT_FIELD_STRINGS && node->kind != DT_YAML_MAP)
        return read_list(reading, record, field, node);
    return read_scalar(reading, record, field, node);
}
