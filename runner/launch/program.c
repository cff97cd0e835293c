#include "runner/launch/program.h"

#include <stdlib.h>
#include <string.h>

#include "runner/cli/interrupt.h"
#include "runner/launch/attempt.h"
#include "runner/launch/existing_run.h"
#include "runner/launch/node_checks.h"
#include "runner/launch/workdir.h"
#include "runner/supervisor/folder/resume_point.h"

static dt_status check(const dt_run *run, const dt_call *call, dt_error *err)
{
    static const char *const of_training[] = {"new-data", "new-model", NULL};

    for (size_t i = 0; of_training[i] != NULL; i++)
        if (dt_arguments_get(call->args, of_training[i])->given)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "--%s is only for training runs, and '%s' is a run of a command",
                           of_training[i], run->id);
    if (run->state == DT_RUN_FINISHED)
        return DT_FAIL(err, DT_ERR_USAGE, "run '%s' is finished: launch it again", run->id);
    return DT_OK;
}

/* Checks the first reference in the text, "NAME}..." or "NAME:-default}...". */
static dt_status check_reference(const char *item, const char *reference, dt_arena *arena,
                                 dt_error *err)
{
    size_t length = strcspn(reference, ":}");
    const char *name = dt_arena_strndup(arena, reference, length), *value = getenv(name);

    if (reference[length] == ':' || (value != NULL && value[0] != '\0'))
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE, "'env.%.*s': the environment lacks '%s': set it",
                   (int)strcspn(item, "="), item, name);
}

/* Checks the variables that `env` references: a launch checks them when it reads the recipe. */
static dt_status check_env(const dt_string_list *env, dt_arena *arena, dt_error *err)
{
    static const char opening[] = "${env:";
    dt_status st = DT_OK;

    for (int64_t i = 0; i < env->count; i++)
        for (const char *at = env->items[i]; (at = strstr(at, opening)) != NULL;) {
            at += strlen(opening);
            DT_TRY(check_reference(env->items[i], at, arena, err));
        }
out:
    return st;
}

/* Chooses the checkpoint to continue from: the newest, or that of --from. Without one, and without --from, the
 * command starts again. */
static dt_status choose_checkpoint(dt_resume_point *out, dt_store *store, const dt_run *run,
                                   bool many, const dt_call *call, dt_error *err)
{
    const char *which = dt_arguments_get(call->args, "from")->text;
    long long step = -1;
    dt_status st = DT_OK;
    char *end;

    if (which != NULL) {
        step = strtoll(which, &end, 10);
        if (end == which || *end != '\0' || step < 0)
            DT_THROW(err, DT_ERR_USAGE, "--from: '%s' is not a step", which);
    }
    DT_TRY(dt_run_program_checkpoint(out, store, run->id, step, many, call->arena, err));
    if (which != NULL && out->path == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND,
                 "run '%s' has no checkpoint of step %lld to continue from (see 'dtrun checkpoints "
                 "%s'; 'checkpoints' of its recipe says where they are)",
                 run->id, step, run->id);
out:
    return st;
}

dt_status dt_program_resume(dt_store *store, dt_run *run, const dt_call *call, dt_error *err)
{
    dt_budget_place at = {0}; /* without a checkpoint, only the program knows where it continues */
    dt_resume_point from;
    dt_status st = DT_OK;
    dt_preflight flight;
    dt_origins origins;
    dt_recipe recipe;

    DT_TRY(check(run, call, err));
    DT_TRY(dt_existing_run_recipe(&recipe, &origins, store, run, call, err));
    DT_TRY(check_env(&recipe.env, call->arena, err));
    DT_TRY(dt_preflight_check(&flight, &recipe, NULL, call->arena, err));
    flight.origins = &origins;
    DT_TRY(choose_checkpoint(&from, store, run, flight.plan.node_count > 1, call, err));
    if (from.path != NULL) {
        flight.plan.program_checkpoint = from.path;
        flight.plan.program_step = at.step = from.step;
    }
    DT_TRY(dt_nodes_check(&flight, run->recipe_path, call, err));
    DT_TRY(dt_launch_workdir_check(&flight, run, call, err));
    dt_launch_workdir_compare(&flight, run, call);
    dt_interrupt_catch(); /* from here on Ctrl-C leaves a complete attempt */
    DT_TRY(dt_attempt_resume(store, run, "", &at, &flight, call->arena, err));
out:
    return st;
}
