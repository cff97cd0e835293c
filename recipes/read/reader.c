#include "recipes/read/reader.h"

#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/read/layers.h"
#include "recipes/read/paths.h"
#include "recipes/read/reading.h"

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

dt_status dt_reading_source(dt_reading *reading, const dt_recipe_source *source, dt_error *err)
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
