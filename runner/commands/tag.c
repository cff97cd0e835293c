/* dtrun tag: adds and removes tags of a run. */
#include "runner/commands/tag.h"

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/tags.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/view/runs/runs.h"

dt_status dt_run_tag(dt_store *store, dt_run *run, const char *const *words, size_t count,
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
        DT_TRY(dt_run_tag(store, &run, (const char *const *)call->args->operands + 1,
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
