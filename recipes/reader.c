#include "recipes/reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "recipes/paths.h"
#include "recipes/reading.h"
#include "recipes/suggest.h"
#include "recipes/values.h"

#include "base/banned.h"

#define PATH_SIZE 128 /* "group.key"; longer ones are no field's */

/* --- keys --- */

/* The keys that may stand in the map, each once. */
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

/* "optimizer.lr" as "optimizer: {lr: ...}". */
static void add_nested(dt_strbuf *text, const char *path)
{
    int depth = 0;

    for (; strchr(path, '.') != NULL; path = strchr(path, '.') + 1, depth++)
        dt_strbuf_add_fmt(text, "%.*s: {", (int)strcspn(path, "."), path);
    dt_strbuf_add_fmt(text, "%s: ...", path);
    while (depth-- > 0)
        dt_strbuf_add_char(text, '}');
}

static dt_status refuse_key(const dt_reading *reading, const dt_text_mark *mark, const char *group,
                            const char *key)
{
    const dt_field *dotted = group[0] == '\0' ? dt_field_find(key) : NULL;
    char found[DT_SUGGEST_SIZE];
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, "unknown key ");
    dt_text_show_word(&text, key);
    if (dotted != NULL) {
        dt_strbuf_add_str(&text, " (write it as '");
        add_nested(&text, dotted->path);
        dt_strbuf_add_str(&text, "')");
    } else if (dt_suggest_field(found, group, key) != NULL) {
        dt_strbuf_add_fmt(&text, " (did you mean '%s'?)", found);
    } else {
        dt_strbuf_add_str(&text, " (known here: ");
        add_keys(&text, group);
        dt_strbuf_add_char(&text, ')');
    }
    return dt_reading_refuse(reading, mark, &text);
}

/* Every entry of a map. What came before an entry was known and not twice, so looking back over
 * it is short, however long the map. */
static dt_status apply_map(dt_reading *reading, const char *group, const dt_yaml_node *map)
{
    dt_status st = DT_OK;

    for (const dt_yaml_node *entry = map->first; entry != NULL; entry = entry->next) {
        const char *key = entry->key->text;
        const char *path;
        char written[PATH_SIZE];

        for (const dt_yaml_node *before = map->first; before != entry; before = before->next)
            if (strcmp(before->key->text, key) == 0)
                return dt_reading_refuse_twice(reading, &entry->key->mark, "duplicate key", key,
                                               &before->key->mark);
        if (group[0] == '\0' && strcmp(key, DT_RECIPE_VERSION_KEY) == 0)
            continue; /* read_version has it */
        snprintf(written, sizeof(written), "%s%s%s", group, group[0] != '\0' ? "." : "", key);
        path = dt_field_unalias(written);
        if (strchr(key, '.') != NULL || (dt_field_find(path) == NULL && !dt_field_is_map(path)))
            return refuse_key(reading, &entry->key->mark, group, key);
        DT_TRY(dt_reading_apply(reading, path, &entry->key->mark, entry));
    }
out:
    return st;
}

/* --- fields --- */

static dt_status apply_field(dt_reading *reading, const dt_field *field, const dt_yaml_node *node)
{
    dt_text_mark *mark;
    double number;
    dt_status st = DT_OK;

    if (field->number_means != NULL && node->kind == DT_YAML_SCALAR && node->plain &&
        dt_text_number(&number, node->text))
        field = dt_field_find(field->number_means);
    mark = &reading->field[field - dt_fields];
    if (mark->source == node->mark.source && mark->line > 0)
        return dt_reading_refuse_twice(reading, &node->mark, "a second value for", field->path,
                                       mark);
    DT_TRY(dt_reading_value(reading, reading->recipe, field, node));
    *mark = node->mark;
    reading->node[field - dt_fields] = node;
out:
    return st;
}

/* --- shorthand --- */

/* The shorthand field of `group` that takes a node which is no map: one whose choices hold it, or
 * one without choices. */
static const dt_field *find_shorthand(const char *group, const dt_yaml_node *node)
{
    bool scalar = node->kind == DT_YAML_SCALAR;
    const dt_field *open = NULL;

    for (size_t i = 0; i < dt_fields_count; i++) {
        const dt_field *field = &dt_fields[i];

        if (!field->shorthand || !dt_field_in_group(field, group))
            continue;
        if (scalar && dt_field_has_choice(field, node->text))
            return field;
        if (field->choices == NULL &&
            (scalar || field->type == DT_FIELD_STRINGS || field->type == DT_FIELD_MAPS))
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
    dt_strbuf_add_str(&text, ": expected a map");
    for (size_t i = 0; i < dt_fields_count; i++) {
        if (!dt_fields[i].shorthand || !dt_field_in_group(&dt_fields[i], group))
            continue;
        dt_strbuf_add_str(&text, ", or ");
        dt_field_expected(&text, &dt_fields[i]);
    }
    return dt_reading_refuse(reading, &node->mark, &text);
}

/* A scalar or a list given for a map. */
static dt_status apply_shorthand(dt_reading *reading, const char *group, const dt_yaml_node *node)
{
    const dt_field *field = find_shorthand(group, node);

    if (dt_yaml_node_is_null(node))
        return dt_reading_refuse_nothing(reading, group, node);
    return field != NULL ? apply_field(reading, field, node)
                         : refuse_shorthand(reading, group, node);
}

dt_status dt_reading_apply(dt_reading *reading, const char *path, const dt_text_mark *key,
                           const dt_yaml_node *node)
{
    const dt_field *field = dt_field_find(path);

    if (field != NULL)
        return apply_field(reading, field, node);
    DT_ASSERT(path[0] == '\0' || dt_field_is_map(path));
    for (size_t i = 0; i < dt_fields_count; i++)
        if (dt_field_below(&dt_fields[i], path))
            reading->group[i] = *key;
    if (node->kind == DT_YAML_MAP)
        return apply_map(reading, path, node);
    return apply_shorthand(reading, path, node);
}

size_t dt_reading_row(const char *path)
{
    const dt_field *field = dt_field_find(path);

    DT_ASSERT(field != NULL);
    return (size_t)(field - dt_fields);
}

bool dt_reading_given(const dt_reading *reading, const char *path)
{
    return reading->field[dt_reading_row(path)].source != NULL;
}

const dt_text_mark *dt_reading_mark(const dt_reading *reading, const char *path)
{
    size_t row = dt_reading_row(path);

    return reading->field[row].source != NULL ? &reading->field[row] : &reading->group[row];
}

/* --- the whole recipe --- */

static const char *stem_of(const char *path, dt_arena *arena)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);

    return dt_arena_strndup(arena, name, length);
}

static dt_status refuse_version(const dt_reading *reading, const dt_yaml_node *entry,
                                double version)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (version > DT_RECIPE_VERSION)
        dt_strbuf_add_fmt(&text,
                          "the recipe is of version %.16g, and this dtrun reads up to %d: use a "
                          "newer dtrun",
                          version, DT_RECIPE_VERSION);
    else
        dt_strbuf_add_fmt(&text,
                          "'" DT_RECIPE_VERSION_KEY "' is the recipe's version: expected a whole "
                          "number, 1 to %d",
                          DT_RECIPE_VERSION);
    return dt_reading_refuse(reading, &entry->mark, &text);
}

/* "recipe: 1" goes before all others: it says what they mean. */
static dt_status read_version(int64_t *out, const dt_reading *reading, const dt_yaml_node *root)
{
    const dt_yaml_node *entry = root->first;
    double number = 0;

    *out = 1;
    while (entry != NULL && strcmp(entry->key->text, DT_RECIPE_VERSION_KEY) != 0)
        entry = entry->next;
    if (entry == NULL)
        return DT_OK;
    if (entry->kind != DT_YAML_SCALAR || !entry->plain || !dt_text_number(&number, entry->text) ||
        number != floor(number) || number < 1 || number > DT_RECIPE_VERSION)
        return refuse_version(reading, entry, number);
    *out = (int64_t)number;
    return DT_OK;
}

static dt_status apply_text(dt_reading *reading, const dt_recipe_source *source)
{
    const dt_text_mark start = {source->path, 1, 1};
    dt_status st = DT_OK;
    int64_t version;
    dt_yaml_node *root;
    dt_strbuf text;

    DT_TRY(dt_tree_parse(&root, source->text, &start, reading->arena, reading->err));
    dt_strbuf_init(&text);
    if (root == NULL || dt_yaml_node_is_null(root)) {
        dt_strbuf_add_str(&text, "the recipe is empty (the least it needs: model, data, schedule)");
        return dt_reading_refuse(reading, &start, &text);
    }
    if (root->kind != DT_YAML_MAP) {
        dt_strbuf_add_fmt(&text, "the recipe is %s: expected a map of fields, such as 'data: ...'",
                          dt_yaml_kind_name(root));
        return dt_reading_refuse(reading, &root->mark, &text);
    }
    DT_TRY(read_version(&version, reading, root));
    dt_recipe_init_version(reading->recipe, version);
    DT_TRY(dt_reading_apply(reading, "", &root->mark, root));
out:
    return st;
}

/* What comes after the fields of the text or the earlier recipe are in place. */
static dt_status finish(dt_reading *reading, const char *const *sets, size_t sets_count)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < sets_count; i++)
        DT_TRY(dt_reading_set(reading, sets[i]));
    DT_TRY(dt_reading_derive(reading));
    DT_TRY(dt_reading_check(reading));
out:
    return st;
}

dt_status dt_reading_source(dt_reading *reading, const dt_recipe_source *source)
{
    dt_status st = DT_OK;

    reading->stem = stem_of(source->path, reading->arena);
    if (reading->stem == NULL)
        DT_THROW(reading->err, DT_ERR_NOMEM, "no memory to read '%s'", source->path);
    DT_TRY(dt_path_folder(&reading->folder, source->path, reading->arena, reading->err));
    DT_TRY(apply_text(reading, source));
    DT_TRY(finish(reading, source->sets, source->sets_count));
out:
    return st;
}

dt_status dt_recipe_read(dt_recipe *out, const dt_recipe_source *source, dt_arena *arena,
                         dt_error *err)
{
    dt_reading reading = {.recipe = out, .arena = arena, .err = err};

    return dt_reading_source(&reading, source);
}

dt_status dt_recipe_change(dt_recipe *out, const dt_recipe *from, const char *const *sets,
                           size_t sets_count, dt_arena *arena, dt_error *err)
{
    dt_reading reading = {.recipe = out, .arena = arena, .err = err};
    json_t *json = dt_recipe_to_json(from);
    dt_status st = DT_OK;

    DT_TRY(dt_recipe_from_json(out, json, arena, err)); /* a copy whose text is ours */
    reading.stem = out->name;
    DT_TRY(dt_path_current(&reading.folder, arena, err));
    reading.resolved = "the run's recipe";
    for (size_t i = 0; i < dt_fields_count; i++)
        reading.field[i].source = reading.group[i].source = reading.resolved;
    DT_TRY(finish(&reading, sets, sets_count));
out:
    json_decref(json);
    return st;
}
