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
