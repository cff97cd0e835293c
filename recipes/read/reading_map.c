/* reading_map: reads maps of a recipe, and their shorthand, as fields (recipes/read/reading.h). */
#include <stdio.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/read/read_int.h"
#include "recipes/read/reader.h"
#include "recipes/read/reading.h"

#define PATH_SIZE   128 /* "group.key"; no field has a longer path */
#define KEYS_LISTED 16  /* more valid keys than this are not listed */

/* --- keys --- */

/* Adds the valid keys of the map, each once. */
static void add_keys(dt_strbuf *text, const char *group)
{
    size_t skip = group[0] != '\0' ? strlen(group) + 1 : 0, length = 0;
    const char *last = NULL;

    for (size_t i = 0; i < dt_fields_count; i++) {
        const char *key = dt_fields[i].path + skip;

        if (!dt_field_below(&dt_fields[i], group) ||
            (last != NULL && strncmp(last, key, length) == 0 && key[length] == '.'))
            continue;
        length = strcspn(key, ".");
        dt_strbuf_add_fmt(text, "%s%.*s", last != NULL ? ", " : "", (int)length, key);
        last = key;
    }
}

/* Adds a path as nested maps: "optimizer.lr" as "optimizer: {lr: ...}". */
static void add_nested(dt_strbuf *text, const char *path)
{
    int depth = 0;

    for (; strchr(path, '.') != NULL; path = strchr(path, '.') + 1, depth++)
        dt_strbuf_add_fmt(text, "%.*s: {", (int)strcspn(path, "."), path);
    dt_strbuf_add_fmt(text, "%s: ...", path);
    while (depth-- > 0)
        dt_strbuf_add_char(text, '}');
}

/* Returns the number of valid keys of the map. */
static int count_keys(const char *group)
{
    int count = 1;
    dt_strbuf all;

    dt_strbuf_init(&all);
    add_keys(&all, group);
    for (const char *at = all.data; (at = strchr(at, ',')) != NULL; at++)
        count++;
    dt_strbuf_release(&all);
    return count;
}

/* Adds what to do about an unknown key that is similar to no field. Many names would hide the hint. */
static void add_known(dt_strbuf *text, const char *group)
{
    bool top = group[0] == '\0';

    if (count_keys(group) <= KEYS_LISTED) {
        dt_strbuf_add_str(text, " (known here: ");
        add_keys(text, group);
        dt_strbuf_add_char(text, ')');
        return;
    }
    dt_strbuf_add_fmt(text, ": remove it, or see docs/recipe.md for the fields of %s%s%s",
                      top ? "a recipe" : "'", top ? "" : group, top ? "" : "'");
}

/* Adds the remedy for a key with its value, as in "layers:2", or with a name that another program uses. */
static bool add_hint(dt_strbuf *text, const char *group, const char *key)
{
    const char *hint = group[0] == '\0' ? dt_suggest_hint(key) : NULL;
    size_t length = strlen(key);
    dt_strbuf blank;
    bool missing;

    dt_strbuf_init(&blank);
    missing = dt_yaml_missing_blank(&blank, key, length);
    if (missing || hint != NULL)
        dt_strbuf_add_fmt(text, " (%s)", missing ? blank.data : hint);
    dt_strbuf_release(&blank);
    return missing || hint != NULL;
}

/* Refuses an unknown key. The suggested field becomes troubled, so that it is not also reported as missing. */
static dt_status refuse_key(dt_reading *reading, const dt_text_mark *mark, const char *group,
                            const char *key)
{
    const dt_field *dotted = group[0] == '\0' ? dt_field_find(key) : NULL;
    bool similar;
    char found[DT_SUGGEST_SIZE];
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, "unknown key ");
    dt_text_show_word(&text, key);
    similar = dt_suggest_field(found, group, key) != NULL;
    if (dotted != NULL) {
        dt_strbuf_add_str(&text, " (write it as '");
        add_nested(&text, dotted->path);
        dt_strbuf_add_str(&text, "')");
        dt_reading_trouble(reading, dotted->path);
    } else if (!add_hint(&text, group, key)) {
        if (similar)
            dt_strbuf_add_fmt(&text, " (did you mean '%s'?)", found);
        else
            add_known(&text, group);
    }
    if (dotted == NULL && similar)
        dt_reading_trouble(reading, found);
    return dt_reading_refuse(reading, mark, &text);
}

static dt_status apply_entry(dt_reading *reading, const char *group, dt_yaml_node *map,
                             dt_yaml_node *entry)
{
    const char *key = entry->key->text, *path;
    char written[PATH_SIZE];

    for (const dt_yaml_node *before = map->first; before != entry; before = before->next)
        if (strcmp(before->key->text, key) == 0)
            return dt_reading_refuse_twice(reading, &entry->key->mark, "duplicate key", key,
                                           &before->key->mark);
    if (group[0] == '\0' &&
        (strcmp(key, DT_RECIPE_VERSION_KEY) == 0 || strcmp(key, DT_RECIPE_EXTENDS_KEY) == 0 ||
         strcmp(key, DT_RECIPE_SWEEP_KEY) == 0))
        return DT_OK; /* handled in layers.c */
    snprintf(written, sizeof(written), "%s%s%s", group, group[0] != '\0' ? "." : "", key);
    path = dt_field_unalias(written);
    if (strchr(key, '.') != NULL || (dt_field_find(path) == NULL && !dt_field_is_map(path)))
        return dt_reading_report(reading, refuse_key(reading, &entry->key->mark, group, key),
                                 "key");
    return dt_reading_apply(reading, path, &entry->key->mark, entry);
}

/* Applies every entry of a map. Valid earlier entries are distinct fields, so that the search for
 * duplicates is short, however long the map is. */
static dt_status apply_map(dt_reading *reading, const char *group, dt_yaml_node *map)
{
    dt_status st = DT_OK;

    for (dt_yaml_node *entry = map->first; entry != NULL; entry = entry->next) {
        st = apply_entry(reading, group, map, entry);
        DT_TRY(dt_reading_report(reading, st, "key"));
    }
out:
    return st;
}

/* --- fields --- */

static dt_status apply_field(dt_reading *reading, const dt_field *field, dt_yaml_node *node)
{
    dt_text_mark *mark;
    double number;
    dt_status st = DT_OK;

    DT_TRY(field->keeps_references ? dt_references_check(reading, node)
                                   : dt_references_fill(reading, node));
    DT_TRY(dt_references_refuse_shell(reading, field, node));
    if (field->number_means != NULL && node->kind == DT_YAML_SCALAR && node->plain &&
        dt_text_number(&number, node->text))
        field = dt_field_find(field->number_means);
    mark = &reading->field[field - dt_fields];
    if (mark->source == node->mark.source && mark->line > 0)
        return dt_reading_refuse_twice(reading, &node->mark, "a second value for", field->path,
                                       mark);
    *mark = node->mark;
    reading->node[field - dt_fields] = node;
    reading->layer_of[field - dt_fields] = reading->layer;
    dt_origins_add(reading->origins, field, dt_origin_value(field, node, reading->arena), mark,
                   NULL, reading->arena);
    st = dt_reading_value(reading, reading->recipe, field, node);
out:
    reading->troubled[field - dt_fields] = st != DT_OK;
    return dt_reading_report(reading, st, "value");
}

/* --- shorthand --- */

/* Returns the shorthand field of `group` for a node that is not a map: one whose choices contain it, or one
 * without choices, for maps if the node is a list of them. */
static const dt_field *find_shorthand(const char *group, const dt_yaml_node *node)
{
    bool scalar = node->kind == DT_YAML_SCALAR;
    bool has_maps = !scalar && node->first != NULL && node->first->kind == DT_YAML_MAP;
    const dt_field *open = NULL;

    for (size_t i = 0; i < dt_fields_count; i++) {
        const dt_field *field = &dt_fields[i];

        if (!field->shorthand || !dt_field_in_group(field, group))
            continue;
        if (scalar && dt_field_has_choice(field, node->text))
            return field;
        if (field->choices != NULL ||
            (!scalar && field->type != DT_FIELD_STRINGS && field->type != DT_FIELD_MAPS))
            continue;
        if (open == NULL || (field->type == DT_FIELD_MAPS) == has_maps)
            open = field;
    }
    return open;
}

static dt_status refuse_shorthand(const dt_reading *reading, const char *group,
                                  const dt_yaml_node *node)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "'%s' is ", group);
    if (node->kind == DT_YAML_SCALAR)
        dt_text_show_word(&text, node->text);
    else
        dt_strbuf_add_str(&text, dt_yaml_kind_name(node));
    dt_strbuf_add_str(&text, ": ");
    if (node->kind == DT_YAML_SCALAR && node->plain &&
        dt_yaml_missing_blank(&text, node->text, strlen(node->text)))
        return dt_reading_refuse(reading, &node->mark, &text);
    dt_strbuf_add_str(&text, "expected a map");
    for (size_t i = 0; i < dt_fields_count; i++) {
        if (!dt_fields[i].shorthand || !dt_field_in_group(&dt_fields[i], group))
            continue;
        dt_strbuf_add_str(&text, ", or ");
        dt_field_expected(&text, &dt_fields[i]);
    }
    return dt_reading_refuse(reading, &node->mark, &text);
}

/* Applies a scalar or a list given instead of a map. */
static dt_status apply_shorthand(dt_reading *reading, const char *group, dt_yaml_node *node)
{
    const dt_field *field = find_shorthand(group, node);

    if (field == NULL ||
        !field->keeps_references) { /* otherwise the field follows from the value */
        dt_status st = dt_references_fill(reading, node);

        if (st != DT_OK) {
            dt_reading_trouble(reading, group);
            return st;
        }
        field = find_shorthand(group, node);
    }

    if (field != NULL && !dt_yaml_node_is_null(node))
        return apply_field(reading, field, node);
    dt_reading_trouble(reading, group);
    return dt_yaml_node_is_null(node) ? dt_reading_refuse_nothing(reading, group, node)
                                      : refuse_shorthand(reading, group, node);
}

dt_status dt_reading_apply(dt_reading *reading, const char *path, const dt_text_mark *key,
                           dt_yaml_node *node)
{
    const dt_field *field = dt_field_find(path);

    if (field != NULL)
        return apply_field(reading, field, node);
    DT_ASSERT(path[0] == '\0' || dt_field_is_map(path));
    for (size_t i = 0; path[0] != '\0' && i < dt_fields_count; i++)
        if (dt_field_below(&dt_fields[i], path))
            reading->group[i] = *key;
    if (node->kind == DT_YAML_MAP)
        return apply_map(reading, path, node);
    return apply_shorthand(reading, path, node);
}
