/* dtrun fork: starts a new run from a checkpoint of another. */
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/tags.h"
#include "runner/gc/gc.h"
#include "runner/launch/attempt.h"
#include "runner/launch/existing_run.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"

/* Chooses the name of the new run: --name, else --set name=, else the name of its parent. */
static dt_status choose_name(const char **out, const dt_run *parent, const dt_recipe *recipe,
                             const dt_call *call, dt_error *err)
{
    const dt_value *sets = dt_arguments_get(call->args, "set");
    const char *asked = dt_arguments_get(call->args, "name")->text;

    *out = parent->name;
    for (size_t i = 0; i < sets->items_count; i++)
        if (strncmp(sets->items[i], "name=", strlen("name=")) == 0)
            *out = recipe->name;
    if (asked == NULL)
        return DT_OK;
    *out = asked;
    return dt_run_name_check(asked, err);
}

static dt_status fork_run(dt_call *call, dt_error *err)
{
    const char *ref, *which, *run;
    dt_checkpoint *checkpoint = NULL;
    dt_store *store = NULL;
    dt_recipe_source source = {0};
    dt_fork begun = {0};
    dt_status st = DT_OK;
    dt_origins origins;
    dt_preflight flight;
    dt_labels labels;
    dt_recipe recipe;
    dt_run parent;

    DT_TRY(dt_follow_options_check(call, err));
    DT_TRY(dt_quotas_check(err));
    DT_TRY(dt_label_options_read(&labels, call, err));
    DT_TRY(dt_from_checkpoint_ref(&ref, &which, call->args->operands[0], false, call, err));
    DT_TRY(dt_runs_open(&store, &parent, ref, call, err));
    DT_TRY(dt_task_refuse(&parent, "be forked", call->arena, err));
    DT_TRY(dt_existing_run_recipe(&recipe, &origins, store, &parent, call, err));
    DT_TRY(choose_name(&begun.name, &parent, &recipe, call, err));
    DT_TRY(dt_existing_run_checkpoint(&checkpoint, &begun.checkpoint, store, &parent, which,
                                      call->arena, err));
    DT_TRY(dt_existing_run_preflight(&flight, &begun.resume_place, &recipe, &origins, &parent,
                                     checkpoint, begun.checkpoint, call, err));
    dt_interrupt_catch(); /* from here on Ctrl-C never leaves half of a run */
    begun.parent = &parent;
    begun.valid_loss = dt_checkpoint_get_info(checkpoint)->valid_loss;
    begun.score = dt_checkpoint_score(dt_checkpoint_get_info(checkpoint));
    source.path = parent.recipe_path;
    source.text = parent.recipe_text;
    DT_TRY(dt_attempt_launch(&run, store, &source, &labels, &begun, &flight, call->arena, err));
    DT_TRY(dt_follow_as_asked(store, run, 0, call, err));
out:
    dt_checkpoint_close(checkpoint);
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "set",
     .letter = 's',
     .kind = DT_OPTION_LIST,
     .value = DT_ASSIGNMENT,
     .help = "override a recipe value for the new run, as in --set optimizer.lr=1e-4"},
    DT_STRICT_OPTION,
    DT_EXISTING_RUN_OPTIONS,
    {.name = "name",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .help = "name of the new run (default: the name of RUN)"},
    DT_LABEL_OPTIONS,
    DT_FOLLOW_OPTIONS,
    {0},
};

const dt_command dt_command_fork = {
    .name = "fork",
    .summary = "start a new run from a checkpoint of another",
    .operands = "RUN[@STEP|@best]",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =

        "The new run starts with the history of RUN up to the checkpoint, and with a copy of the\n"
        "checkpoint (hard links where the disk supports them); RUN can continue or be removed.\n"
        "Without @ the newest checkpoint is used; @best has the lowest validation loss. The same\n"
        "recipe keys can change as with 'dtrun resume'. Without a change the new run reaches the\n"
        "same numbers as RUN, bit for bit.\n",
    .run = fork_run,
};
