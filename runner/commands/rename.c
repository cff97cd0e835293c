/* dtrun rename: changes the name of a run. */
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/tags.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/view/runs/runs.h"

static dt_status rename_run(dt_call *call, dt_error *err)
{
    const dt_labels labels = {.name = call->args->operands[1]};
    dt_store *store = NULL;
    dt_status st;
    dt_run run;

    DT_TRY(dt_run_name_check(labels.name, err));
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    DT_TRY(dt_labels_set(store, run.id, &labels, call->arena, err));
    dt_report_note(call, "renamed run '%s' from %s to %s", run.id, run.name, labels.name);
    run.name = labels.name;
    if (call->json)
        DT_TRY(dt_report_json(dt_runs_to_json(&run), err));
out:
    dt_store_close(store);
    return st;
}

const dt_command dt_command_rename = {
    .name = "rename",
    .summary = "change the name of a run",
    .operands = "RUN NAME",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 2,
    .operands_max = 2,
    .notes =

        "The id, the recipe and the folder of the run keep their names; lists, 'dtrun show' and\n"
        "the web page show the new one.\n",
    .run = rename_run,
};
