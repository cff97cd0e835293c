/* dtrun note: writes or prints the note of a run, and its earlier versions. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/display.h"
#include "base/file.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/view/runs/runs.h"
#include "store/note.h"

enum { NOTE_BYTES = 20000, FILE_BYTES = 1 << 20 };

/* Returns the text of --file or of the words, NULL if there is none. */
static dt_status read_text(const char **out, const dt_call *call, dt_error *err)
{
    const char *path = dt_arguments_get(call->args, "file")->text;
    bool words = call->args->operands_count > 1;
    dt_status st = DT_OK;
    dt_strbuf text;

    *out = NULL;
    dt_strbuf_init(&text);
    if (path != NULL && words)
        DT_THROW(err, DT_ERR_USAGE, "--file and TEXT cannot be combined");
    if (path == NULL && !words)
        goto out;
    if (path != NULL && strcmp(path, "-") == 0)
        DT_TRY(dt_file_read_fd(&text, STDIN_FILENO, "stdin", FILE_BYTES, err));
    else if (path != NULL)
        DT_TRY(dt_file_read(&text, path, FILE_BYTES, err));
    for (int i = 1; i < call->args->operands_count; i++)
        dt_strbuf_add_fmt(&text, "%s%s", i > 1 ? " " : "", call->args->operands[i]);
    while (path != NULL && text.length > 0 && text.data[text.length - 1] == '\n')
        text.data[--text.length] = '\0';
    if (text.length > NOTE_BYTES)
        DT_THROW(err, DT_ERR_USAGE, "a note can have at most %d bytes", NOTE_BYTES);
    if (strlen(text.data) != text.length ||
        dt_utf8_valid_length(text.data, text.length) != text.length)
        DT_THROW(err, DT_ERR_USAGE, "the note is not text in UTF-8");
    *out = dt_arena_strdup(call->arena, text.data);
out:
    dt_strbuf_release(&text);
    return st;
}

/* Compares and writes in one transaction: two people may edit one note. */
static dt_status change(dt_store *store, dt_run *run, const char *text, const dt_call *call,
                        dt_error *err)
{
    const char *replaces = dt_arguments_get(call->args, "replaces")->text;
    const dt_labels labels = {.note = text};
    char version[DT_NOTE_VERSION_BYTES];
    bool begun = false;
    dt_status st;

    DT_TRY(dt_store_begin(store, err));
    begun = true;
    DT_TRY(dt_store_run_find(store, run, run->id, call->arena, err));
    dt_note_version(version, run->note);
    if (replaces != NULL && strcmp(replaces, version) != 0)
        DT_THROW(err, DT_ERR_BUSY,
                 "the note of run '%s' was changed meanwhile: its version is %s, not '%.32s'; read "
                 "it with 'dtrun note %s --history' and write yours again",
                 run->id, version, replaces, run->id);
    DT_TRY(dt_labels_change(store, run->id, &labels, call->arena, err));
    DT_TRY(dt_store_commit(store, err));
    begun = false;
    run->note = text;
out:
    if (begun)
        dt_store_rollback(store);
    return st;
}

static json_t *history_to_json(const dt_run *run, const dt_note *notes, int64_t count)
{
    json_t *object = dt_report_object(), *list = json_array();
    char version[DT_NOTE_VERSION_BYTES], time[DT_CLOCK_ISO_SIZE];

    dt_note_version(version, run->note);
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o}", "version", notes[i].version, "time",
                            notes[i].time_ms > 0 ? json_string(dt_clock_iso(time, notes[i].time_ms))
                                                 : json_null(),
                            "note", dt_json_text(notes[i].text)));
    json_object_set_new(object, "run", json_string(run->id));
    json_object_set_new(object, "note_version", json_string(version));
    json_object_set_new(object, "notes", list);
    return object;
}

static dt_status print_history(dt_store *store, const dt_run *run, const dt_call *call,
                               dt_error *err)
{
    char time[DT_CLOCK_ISO_SIZE];
    dt_status st = DT_OK;
    dt_note *notes;
    dt_strbuf text;
    int64_t count;

    dt_strbuf_init(&text);
    DT_TRY(dt_store_note_list(store, &notes, &count, run->id, call->arena, err));
    if (call->json) {
        DT_TRY(dt_report_json(history_to_json(run, notes, count), err));
        goto out;
    }
    for (int64_t i = 0; i < count; i++)
        dt_strbuf_add_fmt(&text, "%s== %s, version %s%s\n%s\n", i > 0 ? "\n" : "",
                          notes[i].time_ms > 0 ? dt_clock_iso(time, notes[i].time_ms)
                                               : "at an unknown time",
                          notes[i].version, i == count - 1 ? ", the present note" : "",
                          notes[i].text[0] != '\0' ? notes[i].text : "(removed)");
    if (count == 0)
        dt_report_note(call, "run '%s' has no note", run->id);
    DT_TRY(dt_report_text(&text, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status note(dt_call *call, dt_error *err)
{
    dt_store *store = NULL;
    const char *written;
    dt_strbuf text;
    dt_status st;
    dt_run run;

    dt_strbuf_init(&text);
    DT_TRY(read_text(&written, call, err));
    if (written == NULL && dt_arguments_get(call->args, "replaces")->given)
        DT_THROW(err, DT_ERR_USAGE, "--replaces needs a new note (TEXT or --file)");
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    if (written != NULL)
        DT_TRY(change(store, &run, written, call, err));
    if (dt_arguments_flag(call->args, "history")) {
        DT_TRY(print_history(store, &run, call, err));
        goto out;
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

static const dt_option options[] = {
    {.name = "file",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "write the text of this file ('-': stdin)"},
    {.name = "history", .kind = DT_OPTION_FLAG, .help = "print every version, the oldest first"},
    {.name = "replaces",
     .kind = DT_OPTION_TEXT,
     .value = "VERSION",
     .help = "write only if the note still has this version of --history"},
    {0},
};

const dt_command dt_command_note = {
    .name = "note",
    .summary = "write or print the note of a run",
    .operands = "RUN [TEXT]...",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =

        "TEXT replaces the note; '' removes it. 'dtrun show' prints it at the top, the page shows\n"
        "it as Markdown. Earlier versions stay in the history.\n",
    .run = note,
};
