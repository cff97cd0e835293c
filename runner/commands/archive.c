/* dtrun archive: hides runs from lists, by the tag "archived". */
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/commands/tag.h"
#include "runner/view/runs/runs.h"

static dt_status archive(dt_call *call, dt_error *err)
{
    bool undo = dt_arguments_flag(call->args, "undo");
    const char *word = undo ? "-" DT_ARCHIVED : "+" DT_ARCHIVED;
    json_t *runs = json_array(), *object;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_run run;

    for (int i = 0; i < call->args->operands_count; i++) {
        dt_store_close(store);
        store = NULL;
        DT_TRY(dt_runs_open(&store, &run, call->args->operands[i], call, err));
        DT_TRY(dt_run_tag(store, &run, &word, 1, call->arena, err));
        json_array_append_new(runs, json_pack("{s:s, s:b}", "run", run.id, "archived", (int)!undo));
        dt_report_note(call, "run '%s' is %s", run.id,
                       undo ? "in lists again" : "archived ('dtrun list --archived' shows it)");
    }
    if (call->json) {
        object = dt_report_object();
        json_object_set(object, "runs", runs);
        DT_TRY(dt_report_json(object, err));
    }
out:
    json_decref(runs);
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "undo", .kind = DT_OPTION_FLAG, .help = "show the runs in lists again"},
    {0},
};

const dt_command dt_command_archive = {
    .name = "archive",
    .summary = "hide runs from lists",
    .operands = "RUN...",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =

        "Gives the runs the tag 'archived'. Lists leave such runs out, unless they are asked for\n"
        "with --archived or --tag archived; everything else works as before. Nothing is removed.\n",
    .run = archive,
};
