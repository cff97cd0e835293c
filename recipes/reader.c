#include "recipes/reader.h"

#include <math.h>
#include <string.h>

#include "recipes/paths.h"
#include "recipes/reading.h"
#include "recipes/values.h"

#include "base/banned.h"

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

    reading->unread = true;
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
    reading->unread = false;
    DT_TRY(dt_reading_apply(reading, "", &root->mark, root));
out:
    return st;
}

/* What comes after the fields of the text or the earlier recipe are in place. */
static dt_status finish(dt_reading *reading, const char *const *sets, size_t sets_count)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < sets_count; i++)
        DT_TRY(dt_reading_report(reading, dt_reading_set(reading, sets[i]), "value"));
    if (reading->unread)
        goto out;
    DT_TRY(dt_reading_derive(reading));
    DT_TRY(dt_reading_check(reading));
out:
    return st;
}

static dt_status read_source(dt_reading *reading, const dt_recipe_source *source)
{
    dt_status st = DT_OK;

    reading->stem = stem_of(source->path, reading->arena);
    if (reading->stem == NULL)
        DT_THROW(reading->err, DT_ERR_NOMEM, "no memory to read '%s'", source->path);
    reading->sources[reading->sources_count++] = (dt_problem_source){source->path, source->text};
    dt_recipe_init(reading->recipe); /* where the text is not even YAML */
    DT_TRY(dt_path_folder(&reading->folder, source->path, reading->arena, reading->err));
    DT_TRY(dt_reading_report(reading, apply_text(reading, source), "syntax"));
    DT_TRY(finish(reading, source->sets, source->sets_count));
out:
    return st;
}

/* What is wrong goes into `err`, its first. */
static dt_status conclude(dt_reading *reading, dt_status st, dt_error *err)
{
    const dt_problem *first;

    if (st != DT_OK && st != DT_ERR_RECIPE)
        return DT_FAIL(err, st, "%s", reading->err->message);
    st = dt_reading_report(reading, st, "value");
    dt_problems_sort(reading->problems, reading->sources, reading->sources_count);
    first = dt_problems_first(reading->problems);
    return first != NULL ? DT_FAIL(err, DT_ERR_RECIPE, "%s", first->message) : DT_OK;
}

dt_status dt_reading_source(dt_reading *reading, const dt_recipe_source *source, dt_error *err)
{
    dt_error fault = DT_ERROR_INIT;
    dt_status st;

    reading->err = &fault;
    st = conclude(reading, read_source(reading, source), err);
    reading->err = NULL;
    return st;
}

dt_status dt_recipe_read_all(dt_recipe *out, const dt_recipe_source *source, dt_problems *problems,
                             dt_arena *arena, dt_error *err)
{
    dt_reading reading = {.recipe = out, .arena = arena, .problems = problems};
    dt_problems own;

    if (problems == NULL)
        reading.problems = &own;
    dt_problems_init(reading.problems, arena);
    return dt_reading_source(&reading, source, err);
}

dt_status dt_recipe_read(dt_recipe *out, const dt_recipe_source *source, dt_arena *arena,
                         dt_error *err)
{
    return dt_recipe_read_all(out, source, NULL, arena, err);
}

static dt_status change(dt_reading *reading, const dt_recipe *from, const char *const *sets,
                        size_t sets_count)
{
    json_t *json = dt_recipe_to_json(from);
    dt_status st = DT_OK;

    DT_TRY(dt_recipe_from_json(reading->recipe, json, reading->arena,
                               reading->err)); /* a copy whose text is ours */
    reading->stem = reading->recipe->name;
    DT_TRY(dt_path_current(&reading->folder, reading->arena, reading->err));
    reading->resolved = "the run's recipe";
    for (size_t i = 0; i < dt_fields_count; i++)
        reading->field[i].source = reading->group[i].source = reading->resolved;
    DT_TRY(finish(reading, sets, sets_count));
out:
    json_decref(json);
    return st;
}

dt_status dt_recipe_change_all(dt_recipe *out, const dt_recipe *from, const char *const *sets,
                               size_t sets_count, dt_problems *problems, dt_arena *arena,
                               dt_error *err)
{
    dt_error fault = DT_ERROR_INIT;
    dt_reading reading = {.recipe = out, .arena = arena, .problems = problems, .err = &fault};
    dt_problems own;

    if (problems == NULL)
        reading.problems = &own;
    dt_problems_init(reading.problems, arena);
    return conclude(&reading, change(&reading, from, sets, sets_count), err);
}

dt_status dt_recipe_change(dt_recipe *out, const dt_recipe *from, const char *const *sets,
                           size_t sets_count, dt_arena *arena, dt_error *err)
{
    return dt_recipe_change_all(out, from, sets, sets_count, NULL, arena, err);
}
