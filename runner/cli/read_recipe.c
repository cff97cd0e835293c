#include "runner/cli/read_recipe.h"

#include "recipes/fields/task_fields.h"
#include "runner/cli/find_weights.h"
#include "runner/cli/report.h"

dt_status dt_judge_problems(dt_status st, const dt_call *call, dt_error *err)
{
    dt_problems *problems = call->problems;

    if (dt_arguments_flag(call->args, "strict"))
        dt_problems_be_strict(problems);
    if (st == DT_OK && problems->errors > 0)
        return DT_FAIL(err, DT_ERR_RECIPE, "%s", dt_problems_first(problems)->message);
    if (st == DT_OK && !call->json)
        dt_report_problems(call->args->command, problems);
    return st;
}

/* Reads the files of --layer, in the order of the command line. */
static dt_status read_layers(dt_recipe_source *out, const dt_call *call, dt_error *err)
{
    const dt_value *paths = dt_arguments_get(call->args, "layer");
    dt_problem_source *layers =
        dt_arena_alloc_array(call->arena, paths->items_count + 1, sizeof(*layers));
    dt_status st = DT_OK;
    dt_recipe_source layer;

    out->origins = dt_arena_alloc(call->arena, sizeof(*out->origins));
    out->sweep = dt_arena_alloc(call->arena, sizeof(*out->sweep));
    *out->sweep = (dt_sweep){0};
    for (size_t i = 0; i < paths->items_count; i++) {
        DT_TRY(dt_recipe_source_read(&layer, paths->items[i], call->arena, err));
        layers[i] = (dt_problem_source){layer.path, layer.text};
    }
    out->layers = layers;
    out->layers_count = paths->items_count;
out:
    return st;
}

/* Checks the recipes of the other points of a sweep, so that errors are found before the first launch. */
static dt_status check_points(const dt_recipe_source *source, const dt_call *call, dt_error *err)
{
    int64_t points = source->sweep->points;
    dt_recipe_source of = *source;
    dt_origins origins;
    dt_status st = DT_OK;
    dt_recipe recipe;

    of.origins = &origins;
    for (int64_t i = 1; i < points; i++) {
        dt_sweep sweep = {.point = i};
        dt_arena arena;

        of.sweep = &sweep;
        dt_arena_init(&arena, 0);
        st = dt_recipe_read(&recipe, &of, &arena, err);
        dt_arena_release(&arena);
        DT_TRY(st);
    }
out:
    if (st == DT_ERR_RECIPE)
        dt_problems_add(call->problems, err, "sweep", false, source->origins->sources,
                        source->origins->sources_count);
    return st;
}

dt_status dt_read_recipe(dt_recipe *out, dt_recipe_source *source, const char *path,
                         const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    *source = (dt_recipe_source){0};
    DT_TRY(dt_recipe_source_read(source, path, call->arena, err));
    DT_TRY(dt_read_recipe_text(out, source, call, err));
out:
    return st;
}

dt_status dt_read_recipe_text(dt_recipe *out, dt_recipe_source *source, const dt_call *call,
                              dt_error *err)
{
    const dt_value *sets = dt_arguments_get(call->args, "set");
    dt_status st = DT_OK;

    DT_TRY(read_layers(source, call, err));
    source->sets = sets->items;
    source->sets_count = sets->items_count;
    source->find_run = dt_find_weights;
    st = dt_recipe_read_all(out, source, call->problems, call->arena, err);
    DT_TRY(dt_judge_problems(st, call, err));
    DT_TRY(check_points(source, call, err));
out:
    return st;
}

dt_status dt_read_training_recipe(dt_recipe *out, dt_recipe_source *source, const char *path,
                                  const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_read_recipe(out, source, path, call, err));
    if (out->task != DT_TASK_TRAIN)
        DT_THROW(err, DT_ERR_RECIPE,
                 "%s: 'dtrun %s' takes only recipes that train, and this one has 'task: %s'", path,
                 call->args->command->name, dt_task_name(out->task));
out:
    return st;
}
