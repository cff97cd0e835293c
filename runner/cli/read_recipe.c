#include "runner/cli/read_recipe.h"

#include "runner/cli/report.h"

#include "base/banned.h"

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

dt_status dt_read_recipe(dt_recipe *out, dt_recipe_source *source, const char *path,
                         const dt_call *call, dt_error *err)
{
    const dt_value *sets = dt_arguments_get(call->args, "set");
    dt_status st = DT_OK;

    *source = (dt_recipe_source){0};
    DT_TRY(dt_recipe_source_read(source, path, call->arena, err));
    source->sets = sets->items;
    source->sets_count = sets->items_count;
    st = dt_recipe_read_all(out, source, call->problems, call->arena, err);
    DT_TRY(dt_judge_problems(st, call, err));
out:
    return st;
}

static json_t *to_json(const dt_problem *problem)
{
    json_t *object = json_object();

    json_object_set_new(object, "message", dt_json_text(problem->message));
    json_object_set_new(object, "severity", json_string(problem->warning ? "warning" : "error"));
    json_object_set_new(object, "rule", json_string(problem->rule));
    if (problem->mark.source == NULL)
        return object;
    json_object_set_new(object, "source", dt_json_text(problem->mark.source));
    if (problem->mark.line > 0) {
        json_object_set_new(object, "line", json_integer(problem->mark.line));
        json_object_set_new(object, "column", json_integer(problem->mark.column));
    }
    return object;
}

json_t *dt_problems_to_json(const dt_problems *problems)
{
    json_t *array = json_array();

    for (size_t i = 0; i < problems->count; i++)
        json_array_append_new(array, to_json(&problems->items[i]));
    return array;
}
