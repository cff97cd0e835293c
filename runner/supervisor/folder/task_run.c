#include "runner/supervisor/folder/task_run.h"

#include <string.h>

#include "runner/supervisor/folder/run_folder.h"

const char *dt_task_of(const dt_run *run)
{
    static const char *const names[] = {"generate", "score", "command", NULL};
    const char *task, *found = NULL;
    json_t *json = NULL;

    /* most recipes have no task: no need to parse them */
    if (strstr(run->recipe_json, "\"task\"") == NULL ||
        dt_json_parse(&json, run->recipe_json, strlen(run->recipe_json), "stored recipe", NULL) !=
            DT_OK)
        return NULL;
    task = json_string_value(json_object_get(json, "task"));
    for (size_t i = 0; task != NULL && names[i] != NULL; i++)
        if (strcmp(task, names[i]) == 0)
            found = names[i];
    json_decref(json);
    return found;
}

bool dt_task_of_lines(const dt_run *run)
{
    const char *task = dt_task_of(run);

    return task != NULL && strcmp(task, "command") != 0;
}

dt_status dt_task_plan(dt_plan *out, const dt_run *run, dt_arena *arena, dt_error *err)
{
    const char *folder, *path;
    dt_status st = DT_OK;

    DT_TRY(dt_run_path(&folder, run->id, NULL, arena, err));
    path = dt_arena_printf(arena, "%s/attempt-%lld/plan.json", folder, (long long)run->attempt);
    DT_TRY(dt_plan_read(out, path, arena, err));
out:
    return st;
}

dt_status dt_task_refuse(const dt_run *run, const char *what, dt_arena *arena, dt_error *err)
{
    const char *task = dt_task_of(run);
    dt_plan plan;

    if (task == NULL)
        return DT_OK;
    if (!dt_task_of_lines(run))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "run '%s' is a run of a command, whose checkpoints dtrun cannot read: it "
                       "cannot %s",
                       run->id, what);
    if (dt_task_plan(&plan, run, arena, NULL) == DT_OK)
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "run '%s' is a %s run with a checkpoint of run '%s', and cannot %s: name that run",
            run->id, task, plan.task.run, what);
    return DT_FAIL(err, DT_ERR_USAGE, "run '%s' is a %s run, which trained nothing: it cannot %s",
                   run->id, task, what);
}
