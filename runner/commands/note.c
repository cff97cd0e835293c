/* dtrun note: writes or prints the note of a run. */
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/view/runs/runs.h"

enum { NOTE_BYTES = 10000 };

/* Joins the words to one text. */
static dt_status join(const char **out, const dt_call *call, dt_error *err)
{
    dt_strbuf text;
    dt_status st = DT_OK;

    dt_strbuf_init(&text);
    for (int i = 1; i < call->args->operands_count; i++)
        dt_strbuf_add_fmt(&text, "%s%s", i > 1 ? " " : "", call->args->operands[i]);
    if (text.length > NOTE_BYTES)
        DT_THROW(err, DT_ERR_USAGE, "a note can have at most %d bytes, not %zu", NOTE_BYTES,
                 text.length);
    *out = dt_arena_strdup(call->arena, text.data);
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status note(dt_call *call, dt_error *err)
{
    dt_store *store = NULL;
    dt_labels labels = {0};
    dt_strbuf text;
    dt_status st;
    dt_run run;

    dt_strbuf_init(&text);
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    if (call->args->operands_count > 1) {
        DT_TRY(join(&labels.note, call, err));
        DT_TRY(dt_labels_set(store, run.id, &labels, call->arena, err));
        run.note = labels.note;
    }
    dt_strbuf_add_fmt(&text, "%s\n", run.note);
    if (call->json)
        DT_TRY(dt_report_json(dt_runs_to_json(&run), err));
    else if (run.note[0] != '\0')
        DT_TRY(dt_report_text(&text, err));
out:
    dt_strbuf_release(&text);
    dt_store_close(store);
    return st;
}

const dt_command dt_command_note = {
    .name = "note",
    .summary = "write or print the note of a run",
    .operands = "RUN [TEXT]...",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = -1,
    .notes =

        "TEXT replaces the note; '' removes it. 'dtrun show' prints it at the top.\n",
    .run = note,
};
