/* reader: reads a recipe from YAML, finds positions in it, and writes a resolved recipe. */
#include "recipes/read/reader.h"

#include <string.h>

#include "recipes/architecture/architecture.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"
#include "recipes/read/read_int.h"
#include "recipes/read/reading.h"

/* --- reading */

static const char *stem_of(const char *path, dt_arena *arena)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);

    return dt_arena_strndup(arena, name, length);
}

/* Applies --set, derives defaults and checks rules, after the fields of the text or the earlier recipe. */
static dt_status finish(dt_reading *reading, const char *const *sets, size_t sets_count,
                        dt_sweep *sweep)
{
    dt_status st = DT_OK;

    reading->layer++;
    for (size_t i = 0; i < sets_count; i++)
        DT_TRY(dt_reading_report(reading, dt_reading_set(reading, sets[i]), "value"));
    if (reading->unread)
        goto out;
    DT_TRY(dt_sweep_apply(reading, sweep));
    DT_TRY(dt_reading_derive(reading));
    DT_TRY(dt_reading_check(reading));
out:
    return st;
}

/* Applies a layer. If its text is not a recipe, missing fields are not reported. */
static dt_status read_layer(dt_reading *reading, const char *path, const char *text)
{
    dt_status st = dt_layer_apply(reading, path, text);

    reading->unread = reading->unread || st != DT_OK;
    return dt_reading_report(reading, st, "syntax");
}

static dt_status read_source(dt_reading *reading, const dt_recipe_source *source)
{
    dt_status st = DT_OK;

    reading->find_run = source->find_run;
    reading->stem = stem_of(source->path, reading->arena);
    dt_recipe_init(reading->recipe);
    for (size_t i = 0; i < dt_fields_count; i++)
        reading->group[i] = (dt_text_mark){source->path, 0, 0};
    DT_TRY(dt_path_current(&reading->folder, reading->arena, reading->err));
    DT_TRY(dt_path_folder(&reading->recipe_folder, source->path, reading->arena, reading->err));
    DT_TRY(read_layer(reading, source->path, source->text));
    for (size_t i = 0; i < source->layers_count; i++)
        DT_TRY(read_layer(reading, source->layers[i].name, source->layers[i].text));
    DT_TRY(finish(reading, source->sets, source->sets_count, source->sweep));
out:
    return st;
}

/* Stores the first problem in `err`. */
static dt_status conclude(dt_reading *reading, dt_status st, dt_error *err)
{
    const dt_problem *first;

    if (st != DT_OK && st != DT_ERR_RECIPE)
        return DT_FAIL(err, st, "%s", reading->err->message);
    st = dt_reading_report(reading, st, "value");
    dt_problems_sort(reading->problems, reading->origins->sources, reading->origins->sources_count);
    first = dt_problems_first(reading->problems);
    return first != NULL ? DT_FAIL(err, DT_ERR_RECIPE, "%s", first->message) : DT_OK;
}

/* Reads a new recipe completely. The caller sets reading->recipe, problems and arena. Errors are added to
 * the problems, and the first one to `err`. */
static dt_status reading_source(dt_reading *reading, const dt_recipe_source *source, dt_error *err)
{
    dt_error fault = DT_ERROR_INIT;
    dt_origins own = {0};
    dt_status st;

    reading->problems->unwritten = source->unwritten ? source->path : NULL;
    reading->err = &fault;
    reading->origins = source->origins != NULL ? source->origins : &own;
    *reading->origins = own;
    st = conclude(reading, read_source(reading, source), err);
    reading->err = NULL;
    reading->origins = NULL;
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
    return reading_source(&reading, source, err);
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
                               reading->err)); /* a copy with its own text */
    reading->stem = reading->recipe->name;
    DT_TRY(dt_path_current(&reading->folder, reading->arena, reading->err));
    reading->recipe_folder = reading->folder;
    reading->resolved = "the run's recipe";
    for (size_t i = 0; i < dt_fields_count; i++)
        reading->field[i].source = reading->group[i].source = reading->resolved;
    DT_TRY(finish(reading, sets, sets_count, NULL));
out:
    json_decref(json);
    return st;
}

dt_status dt_recipe_change_all(dt_recipe *out, const dt_recipe *from, const char *const *sets,
                               size_t sets_count, dt_problems *problems, dt_origins *origins,
                               dt_arena *arena, dt_error *err)
{
    dt_error fault = DT_ERROR_INIT;
    dt_reading reading = {.recipe = out, .arena = arena, .problems = problems, .err = &fault};
    dt_origins no_origins = {0};
    dt_problems own;

    if (problems == NULL)
        reading.problems = &own;
    reading.origins = origins != NULL ? origins : &no_origins;
    *reading.origins = no_origins;
    dt_problems_init(reading.problems, arena);
    return conclude(&reading, change(&reading, from, sets, sets_count), err);
}

dt_status dt_recipe_change(dt_recipe *out, const dt_recipe *from, const char *const *sets,
                           size_t sets_count, dt_arena *arena, dt_error *err)
{
    return dt_recipe_change_all(out, from, sets, sets_count, NULL, NULL, arena, err);
}

/* --- the position in the recipe of the files that a message names */

/* Returns whether the message quotes the file, or a file that may match the pattern. */
static bool is_about(const char *message, const char *item)
{
    size_t literal = strcspn(item, "*?[");

    for (const char *at = strchr(message, '\''); at != NULL; at = strchr(at + 1, '\''))
        if (literal > 0 && strncmp(at + 1, item, literal) == 0 &&
            (item[literal] != '\0' || at[1 + literal] == '\''))
            return true;
    return false;
}

/* Finds the mark of the list item that the message is about. */
static bool locate_item(dt_text_mark *out, const dt_reading *reading, const char *path,
                        const dt_string_list *list, const char *message)
{
    const dt_yaml_node *node = reading->node[dt_reading_row(path)];
    const dt_yaml_node *item = node != NULL && node->kind == DT_YAML_LIST ? node->first : node;

    for (int64_t i = 0; i < list->count && item != NULL; i++, item = item->next)
        if (is_about(message, list->items[i])) {
            *out = item->mark;
            return true;
        }
    return false;
}

/* Finds the first field that the message names and the recipe sets; data.train if there is none. Paths without a dot
 * are words of other texts too. */
static const dt_text_mark *locate_field(const dt_reading *reading, const char *message)
{
    const char *first = NULL, *path = "data.train";

    for (size_t i = 0; i < dt_fields_count; i++) {
        const char *at = strchr(dt_fields[i].path, '.') != NULL && reading->node[i] != NULL
                             ? strstr(message, dt_fields[i].path)
                             : NULL;

        if (at == NULL || (first != NULL && at > first) ||
            (at == first && strlen(dt_fields[i].path) < strlen(path)))
            continue;
        first = at;
        path = dt_fields[i].path;
    }
    return dt_reading_mark(reading, path);
}

void dt_recipe_locate_data(dt_error *err, const dt_recipe_source *source, dt_arena *arena)
{
    dt_error ignored = DT_ERROR_INIT;
    dt_recipe recipe;
    dt_problems problems;
    dt_reading reading = {.recipe = &recipe, .arena = arena, .problems = &problems};
    dt_text_mark mark = {source->path, 0, 0};

    dt_problems_init(&problems, arena);
    if (reading_source(&reading, source, &ignored) == DT_OK &&
        !locate_item(&mark, &reading, "data.train", &recipe.data.train, err->message) &&
        !locate_item(&mark, &reading, "data.validation", &recipe.data.validation, err->message) &&
        !locate_item(&mark, &reading, "evaluate.tasks", &recipe.evaluate.tasks, err->message))
        mark = *locate_field(&reading, err->message);
    if (!source->unwritten)
        dt_text_mark_prefix(err, &mark);
}

void dt_recipe_locate_lines(dt_error *err, const dt_recipe_source *source, dt_arena *arena)
{
    dt_error ignored = DT_ERROR_INIT;
    dt_recipe recipe;
    dt_problems problems;
    dt_reading reading = {.recipe = &recipe, .arena = arena, .problems = &problems};
    dt_text_mark mark = {source->path, 0, 0};
    const struct {
        const char *path, *const *value;
    } fields[] = {{"lines.run", &recipe.lines.run},
                  {"lines.output", &recipe.lines.output},
                  {"lines.target", &recipe.lines.target},
                  {"lines.input", &recipe.lines.input}};

    dt_problems_init(&problems, arena);
    if (reading_source(&reading, source, &ignored) == DT_OK)
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
            if (strstr(err->message, fields[i].path) != NULL ||
                is_about(err->message, *fields[i].value)) {
                mark = *dt_reading_mark(&reading, fields[i].path);
                break;
            }
    dt_text_mark_prefix(err, &mark);
}

/* --- writing */

/* Returns whether the optimizer's default of the field differs from the table's. */
static bool has_own_default(const dt_recipe *recipe, const char *path)
{
    const dt_optimizer_default *own = dt_optimizers[recipe->optimizer.kind].defaults;

    for (size_t i = 0; i < DT_OPTIMIZER_DEFAULTS && own[i].path != NULL; i++)
        if (strcmp(path, own[i].path) == 0)
            return true;
    return false;
}

/* Returns whether a field can be left out, which is necessary if fields exclude each other. A preset was
 * replaced by its dimensions, and the nodes of a hostfile are listed. */
static bool is_left_out(const dt_recipe *recipe, const dt_recipe *defaults, const dt_field *field)
{
    json_t *value, *usual;
    bool same;

    if (strcmp(field->path, "model.preset") == 0 || strcmp(field->path, "hostfile") == 0 ||
        dt_architecture_ignores(recipe->model.kind, field->path) ||
        (recipe->task == DT_TASK_COMMAND && !dt_field_is_of_task(field, DT_TASK_COMMAND)))
        return true;
    if (has_own_default(recipe, field->path))
        return false;
    value = dt_field_to_json(recipe, field);
    usual = dt_field_to_json(defaults, field);
    same = json_equal(value, usual) != 0 && field->type != DT_FIELD_NUMBER;
    same = same || (json_equal(value, usual) != 0 && field->fallback != NULL);
    json_decref(value);
    json_decref(usual);
    return same;
}

/* Puts the value at "a.b.c" into the nested maps of `root`. */
static void put(json_t *root, const char *path, json_t *value)
{
    const char *dot;

    for (; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        json_t *next = json_object_getn(root, path, (size_t)(dot - path));

        if (next == NULL) {
            next = json_object();
            json_object_setn_new(root, path, (size_t)(dot - path), next);
        }
        root = next;
    }
    json_object_set_new(root, path, value);
}

void dt_recipe_write(dt_strbuf *out, const dt_recipe *recipe)
{
    json_t *root = json_pack("{s:i}", DT_RECIPE_VERSION_KEY, DT_RECIPE_VERSION);
    dt_recipe defaults;
    dt_strbuf text;

    dt_recipe_init(&defaults);
    for (size_t i = 0; i < dt_fields_count; i++)
        if (!is_left_out(recipe, &defaults, &dt_fields[i]))
            put(root, dt_fields[i].path, dt_field_to_json(recipe, &dt_fields[i]));
    dt_strbuf_init(&text);
    dt_json_write_pretty(&text, root);
    dt_json_shorten(out, text.data);
    dt_strbuf_release(&text);
    json_decref(root);
}
