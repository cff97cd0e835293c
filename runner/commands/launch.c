/* dtrun launch: from a recipe to a supervised run. */
#include "runner/cli/command.h"
#include "runner/cli/interrupt.h"
#include "runner/cli/label_options.h"
#include "runner/cli/read_recipe.h"
#include "runner/launch/attempt.h"
#include "runner/launch/dry_run.h"
#include "runner/launch/node_checks.h"
#include "runner/launch/preflight.h"
#include "runner/view/follow_options.h"

#include "base/banned.h"

static dt_status launch(dt_call *call, dt_error *err)
{
    dt_recipe_source source;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_labels labels = {0};
    dt_preflight flight;
    dt_recipe recipe;
    const char *run;

    DT_TRY(dt_follow_options_check(call, err));
    DT_TRY(dt_label_options_read(&labels, call, err));
    DT_TRY(dt_read_recipe(&recipe, &source, call->args->operands[0], call, err));
    DT_TRY(dt_preflight_check(&flight, &recipe, &source, call->arena, err));
    DT_TRY(dt_nodes_check(&flight, call->args->operands[0], call, err));
    if (dt_arguments_flag(call->args, "dry-run")) {
        DT_TRY(dt_dry_run_print(&flight, call, err));
        goto out;
    }
    dt_interrupt_catch(); /* Ctrl-C from here on leaves a whole run, never half of one */
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(dt_attempt_launch(&run, store, &source, &labels, NULL, &flight, call->arena, err));
    DT_TRY(dt_follow_as_asked(store, run, call, err));
out:
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    DT_RECIPE_OPTIONS("change the recipe for this run, as in --set optimizer.lr=1e-4"),
    DT_LABEL_OPTIONS,
    DT_FOLLOW_OPTIONS,
    {.name = "dry-run",
     .letter = 'n',
     .kind = DT_OPTION_FLAG,
     .help = "check everything, print what would be started, start nothing"},
    {0},
};

const dt_command dt_command_launch = {
    .name = "launch",
    .summary = "start a run from a recipe and follow it",
    .operands = "RECIPE",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "Without --wait or --detach the run is followed: a live view on a terminal, plain\n"
             "lines elsewhere. Ctrl-C leaves the view with exit code 130; the run goes on, and\n"
             "'dtrun status --watch RUN' comes back to it.\n"
             "\n"
             "The recipe, its data, the nodes, their memory and their disks are checked before\n"
             "anything is started. Nodes need an sshd and nothing of dtrun's: docs/nodes.md says\n"
             "what goes there. At the end the exit code is that of the run. With --json the\n"
             "object at the end has at least run, state, steps, loss, valid_loss, seconds.\n"
             "\n"
             "With nodes: slurm:4 a job is submitted and waited for, and given back at the end;\n"
             "nodes: slurm takes the machines of the Slurm job that this runs in (docs/slurm.md).\n"
             "Data by https are fetched into ~/.cache/dtrun/data first; what breaks off goes on.\n",
    .run = launch,
};
