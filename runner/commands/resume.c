/* dtrun resume: the next attempt of a run, from its newest whole checkpoint. */
#include <stdio.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "recipes/fields.h"
#include "runner/cli/command.h"
#include "runner/cli/interrupt.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/launch/attempt.h"
#include "runner/launch/node_checks.h"
#include "runner/launch/resume_check.h"
#include "runner/supervisor/supervisor.h"
#include "runner/view/follow_options.h"
#include "runner/view/runs.h"

#include "base/banned.h"

static dt_status refuse_without_checkpoint(const dt_run *run, dt_error *err)
{
    int64_t below = run->step > 0 ? run->step : run->steps_total;
    char words[64] = "";

    if (below > 0)
        snprintf(words, sizeof(words), " below %lld", (long long)below);
    return DT_FAIL(err, DT_ERR_NOT_FOUND,
                   "run '%s' has no whole checkpoint to go on from: launch it anew, with a"
                   " checkpoint.every%s",
                   run->id, words);
}

/* The newest checkpoint that is whole, open: one that the history knows of, or, where there is
 * none, one that somebody put there. */
static dt_status open_newest(dt_checkpoint **out, const char **path, dt_store *store,
                             const dt_run *run, dt_arena *arena, dt_error *err)
{
    dt_resume_point known;
    const char *parent;
    dt_status st = DT_OK;

    DT_TRY(dt_run_path(&parent, run->id, "checkpoints", arena, err));
    DT_TRY(dt_run_newest_checkpoint(&known, store, run->id, parent, arena, err));
    *path = known.path;
    if (*path == NULL)
        DT_TRY(dt_checkpoint_find_newest(path, parent, arena, err));
    if (*path == NULL)
        DT_TRY(refuse_without_checkpoint(run, err));
    DT_TRY(dt_checkpoint_open(out, *path, err));
out:
    return st;
}

/* An attempt that failed before its first step leaves the recipe as it was. */
static dt_status find_recipe(dt_store *store, dt_run *run, const dt_call *call, dt_error *err)
{
    dt_standing standing;
    dt_status st = DT_OK;

    DT_TRY(dt_store_run_standing(store, &standing, run->id, call->arena, err));
    if (strcmp(standing.recipe_hash, run->recipe_hash) != 0)
        dt_report_note(
            call,
            "attempt %lld failed before its first step: the run goes on by the recipe of "
            "attempt %lld",
            (long long)run->attempt, (long long)standing.attempt);
    run->recipe_json = standing.recipe_json;
    run->recipe_hash = standing.recipe_hash;
out:
    return st;
}

/* That recipe with --set on top. */
static dt_status change_recipe(dt_recipe *out, dt_origins *origins, const dt_run *run,
                               const dt_call *call, dt_error *err)
{
    const dt_value *sets = dt_arguments_get(call->args, "set");
    dt_status st = DT_OK;
    json_t *json = NULL;
    dt_recipe before;

    DT_TRY(dt_json_parse(&json, run->recipe_json, strlen(run->recipe_json), "stored recipe", err));
    DT_TRY(dt_recipe_from_json(&before, json, call->arena, err));
    st = dt_recipe_change_all(out, &before, sets->items, sets->items_count, call->problems, origins,
                              call->arena, err);
    DT_TRY(dt_judge_problems(st, call, err));
out:
    json_decref(json);
    return st;
}

static dt_status resume(dt_call *call, dt_error *err)
{
    dt_checkpoint *checkpoint = NULL;
    dt_store *store = NULL;
    dt_budget_place at;
    const char *path;
    dt_status st = DT_OK;
    dt_origins origins;
    dt_preflight flight;
    dt_recipe recipe;
    dt_run run;

    DT_TRY(dt_follow_options_check(call, err));
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    if (!dt_run_state_is_terminal(run.state))
        DT_THROW(err, DT_ERR_USAGE,
                 "run '%s' is %s: it can be resumed once it has ended ('dtrun stop %s' ends it)",
                 run.id, dt_run_state_name(run.state), run.id);
    DT_TRY(find_recipe(store, &run, call, err));
    DT_TRY(change_recipe(&recipe, &origins, &run, call, err));
    DT_TRY(open_newest(&checkpoint, &path, store, &run, call->arena, err));
    DT_TRY(dt_preflight_check(&flight, &recipe, NULL, call->arena, err));
    flight.origins = &origins;
    flight.plan.new_data = dt_arguments_flag(call->args, "new-data");
    DT_TRY(dt_resume_check(&at, &flight, checkpoint, &run, call, err));
    DT_TRY(dt_nodes_check(&flight, run.recipe_path, call, err));
    dt_interrupt_catch(); /* Ctrl-C from here on leaves a whole attempt, never half of one */
    DT_TRY(dt_attempt_resume(store, &run, path, &at, &flight, call->arena, err));
    DT_TRY(dt_follow_as_asked(store, run.id, call, err));
out:
    dt_checkpoint_close(checkpoint);
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "set",
     .letter = 's',
     .kind = DT_OPTION_LIST,
     .value = "KEY=VALUE",
     .help = "change the recipe from here on, as in --set schedule.steps=4000"},
    DT_STRICT_OPTION,
    {.name = "new-data",
     .kind = DT_OPTION_FLAG,
     .help = "the data may be others than the checkpoint's: they begin at their start"},
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
             "stopped. A finished run can go on when it is given more steps.\n"
             "\n"
             "An attempt that fails before its first step changes nothing: a finished run stays\n"
             "finished, and the next resume goes by the recipe that was there before.\n"
             "\n"
             "Learning rate, length, evaluation, nodes, ranks, strategy and precision may change.\n"
             "The model may not, nor, without --new-data, what a position in the data means: the\n"
             "content and order of the files, data.split, data.tail, batch.tokens and the seed.\n"
             "With it the data begin at their start, and so do epochs; the tokenizer stays.\n",
    .run = resume,
};
