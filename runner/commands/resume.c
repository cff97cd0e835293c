/* dtrun resume: the next attempt of a run, from its newest whole checkpoint. */
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "recipes/fields.h"
#include "runner/cli/attempt.h"
#include "runner/cli/command.h"
#include "runner/cli/follow_options.h"
#include "runner/cli/interrupt.h"
#include "runner/cli/nodes.h"
#include "runner/cli/runs.h"
#include "runner/supervisor/supervisor.h"

#include "base/banned.h"

/* The newest checkpoint that is whole, and the steps it holds: one that the history knows of, or,
 * where there is none, one that somebody put there. */
static dt_status newest_checkpoint(const char **path, int64_t *step, dt_store *store,
                                   const dt_run *run, dt_arena *arena, dt_error *err)
{
    dt_checkpoint *checkpoint = NULL;
    const char *parent;
    dt_status st = DT_OK;

    DT_TRY(dt_run_path(&parent, run->id, "checkpoints", arena, err));
    DT_TRY(dt_run_newest_checkpoint(path, step, store, run->id, parent, arena, err));
    if (*path != NULL)
        return DT_OK;
    DT_TRY(dt_checkpoint_find_newest(path, parent, arena, err));
    if (*path == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND,
                 "run '%s' has no whole checkpoint to go on from: launch it anew, with a"
                 " checkpoint.every below %lld",
                 run->id, (long long)(run->step > 0 ? run->step : run->steps_total));
    DT_TRY(dt_checkpoint_open(&checkpoint, *path, err));
    *step = dt_checkpoint_get_info(checkpoint)->step;
out:
    dt_checkpoint_close(checkpoint);
    return st;
}

/* The recipe of the newest attempt with --set on top. */
static dt_status change_recipe(dt_recipe *out, const dt_run *run, const dt_value *sets,
                               dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *json = NULL;
    dt_recipe before;

    DT_TRY(dt_json_parse(&json, run->recipe_json, strlen(run->recipe_json), "stored recipe", err));
    DT_TRY(dt_recipe_from_json(&before, json, arena, err));
    DT_TRY(dt_recipe_change(out, &before, sets->items, sets->items_count, arena, err));
out:
    json_decref(json);
    return st;
}

static dt_status resume(dt_call *call, dt_error *err)
{
    const dt_value *sets = dt_arguments_get(call->args, "set");
    const char *checkpoint;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_preflight flight;
    dt_recipe recipe;
    int64_t step = 0;
    dt_run run;

    DT_TRY(dt_follow_options_check(call, err));
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    if (!dt_run_state_is_terminal(run.state))
        DT_THROW(err, DT_ERR_USAGE,
                 "run '%s' is %s: it can be resumed once it has ended ('dtrun stop %s' ends it)",
                 run.id, dt_run_state_name(run.state), run.id);
    DT_TRY(change_recipe(&recipe, &run, sets, call->arena, err));
    DT_TRY(newest_checkpoint(&checkpoint, &step, store, &run, call->arena, err));
    if (step >= recipe.schedule.steps)
        DT_THROW(err, DT_ERR_RECIPE,
                 "run '%s' has done all its %lld steps: to go on give it more, as in"
                 " 'dtrun resume %s --set schedule.steps=%lld'",
                 run.id, (long long)recipe.schedule.steps, run.id, (long long)step * 2);
    DT_TRY(dt_preflight_check(&flight, &recipe, NULL, call->arena, err));
    DT_TRY(dt_nodes_check(&flight, run.recipe_path, call, err));
    dt_interrupt_watch(); /* Ctrl-C from here on leaves a whole attempt, never half of one */
    DT_TRY(dt_attempt_resume(store, &run, checkpoint, step, &flight, call->arena, err));
    DT_TRY(dt_follow_as_asked(store, run.id, call, err));
out:
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "set",
     .letter = 's',
     .kind = DT_OPTION_LIST,
     .value = "KEY=VALUE",
     .help = "change the recipe from here on, as in --set schedule.steps=4000"},
    DT_FOLLOW_OPTIONS,
    {0},
};

const dt_command dt_command_resume = {
    .name = "resume",
    .summary = "go on with an ended run from its newest checkpoint",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "The run keeps its id and gets another attempt; damaged checkpoints are passed over.\n"
             "A stopped run that is resumed reaches the same numbers as one that was never\n"
             "stopped. A finished run can go on when it is given more steps.\n",
    .run = resume,
};
