/* dtrun tag: adds and removes tags of a run; dtrun archive: hides runs from lists, by the tag "archived". */
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/tags.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/view/runs/runs.h"

/* Adds the tags "+a" and "a" and removes "-b", in one transaction: two people may tag one run. *run gets the new tags. */
static dt_status change_tags(dt_store *store, dt_run *run, const char *const *words, size_t count,
                             dt_arena *arena, dt_error *err)
{
    dt_labels labels = {0};
    bool begun = false;
    dt_status st;

    DT_TRY(dt_store_begin(store, err));
    begun = true;
    DT_TRY(dt_store_run_find(store, run, run->id, arena, err));
    DT_TRY(dt_tags_change(&labels.tags, run->tags, words, count, arena, err));
    DT_TRY(dt_labels_change(store, run->id, &labels, arena, err));
    DT_TRY(dt_store_commit(store, err));
    begun = false;
    run->tags = labels.tags;
out:
    if (begun)
        dt_store_rollback(store);
    return st;
}

static dt_status tag(dt_call *call, dt_error *err)
{
    dt_store *store = NULL;
    dt_strbuf text;
    dt_status st;
    dt_run run;

    dt_strbuf_init(&text);
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    if (call->args->operands_count > 1)
        DT_TRY(change_tags(store, &run, (const char *const *)call->args->operands + 1,
                           (size_t)call->args->operands_count - 1, call->arena, err));
    dt_strbuf_add_fmt(&text, "%s\n", run.tags);
    if (call->json)
        DT_TRY(dt_report_json(dt_runs_to_json(&run), err));
    else if (run.tags[0] != '\0')
        DT_TRY(dt_report_text(&text, err));
out:
    dt_strbuf_release(&text);
    dt_store_close(store);
    return st;
}

const dt_command dt_command_tag = {
    .name = "tag",
    .summary = "add and remove tags of a run",
    .operands = "RUN [+TAG|-TAG]...",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = -1,
    .dash_operands = true,
    .notes =

        "+TAG (or TAG) adds a tag, -TAG removes it; then the tags of the run are printed. A tag\n"
        "has letters, digits and any of . _ : / @ -. 'dtrun list --tag TAG' lists the runs with a\n"
        "tag, 'dtrun launch --tag TAG' starts a run with it.\n",
    .run = tag,
};

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
        DT_TRY(change_tags(store, &run, &word, 1, call->arena, err));
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

static const dt_option archive_options[] = {
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
    .options = archive_options,
    .notes =

        "Gives the runs the tag 'archived'. Lists leave such runs out, unless they are asked for\n"
        "with --archived or --tag archived; everything else works as before. Nothing is removed.\n",
    .run = archive,
};
