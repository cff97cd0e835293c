/* dtrun store: checks, repairs or backs up the history. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/dirs.h"
#include "base/file.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/rebuild/rebuild.h"

static void add_problem(json_t *problems, const char *fmt, ...) DT_PRINTF(2, 3);
static void add_problem(json_t *problems, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    json_array_append_new(problems, dt_json_text(text));
}

static const char *find_runs_folder(dt_arena *arena, dt_error *err)
{
    const char *state, *runs = NULL;

    if (dt_dir_path(&state, DT_DIR_STATE, arena, err) == DT_OK)
        runs = dt_arena_printf(arena, "%s/runs", state);
    return runs;
}

/* Reports runs of the history that have no folder. */
static void check_rows(json_t *problems, const dt_run_mark *marks, int64_t count, const char *runs,
                       dt_arena *arena)
{
    for (int64_t i = 0; i < count; i++) {
        const char *folder = dt_arena_printf(arena, "%s/%s", runs, marks[i].id);

        if (!dt_file_exists(folder))
            add_problem(problems, "run '%s' has no folder '%s' (moved? 'dtrun rm %s' removes it)",
                        marks[i].id, folder, marks[i].id);
    }
}

static bool has_row(const dt_run_mark *marks, int64_t count, const char *run)
{
    for (int64_t i = 0; i < count; i++)
        if (strcmp(marks[i].id, run) == 0)
            return true;
    return false;
}

/* Reports folders without a run in the history: the repair before this could not restore their rows. */
static void check_folders(json_t *problems, const dt_run_mark *marks, int64_t count,
                          const char *runs)
{
    static const char prefix[] = DT_REMOVED_PREFIX;
    struct dirent *entry;
    DIR *dir = opendir(runs);

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            add_problem(problems,
                        "'%s/%s' is left of an interrupted removal ('dtrun rm %s' completes it)",
                        runs, entry->d_name, entry->d_name + strlen(prefix));
        else if (entry->d_name[0] != '.' && !has_row(marks, count, entry->d_name))
            add_problem(problems, "'%s/%s' does not belong to a run of the history", runs,
                        entry->d_name);
    }
    if (dir != NULL)
        closedir(dir);
}

static void check_repaired(json_t *problems, const char *runs, dt_arena *arena)
{
    const char *path = dt_arena_printf(arena, "%s/../" DT_REPAIRED_FILE, runs);

    if (dt_file_exists(path))
        add_problem(problems, "a repair was interrupted ('dtrun store repair' completes it)");
}

/* Reports points and events that only a journal has. */
static dt_status check_journals(json_t *problems, dt_store *store, const dt_run_mark *marks,
                                int64_t count, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t missing;

    for (int64_t i = 0; i < count; i++) {
        DT_TRY(dt_fill_missing(&missing, store, marks[i].id, err));
        if (missing > 0)
            add_problem(problems,
                        "the history lacks %lld rows of the journals of run '%s' ('dtrun "
                        "store repair' adds them)",
                        (long long)missing, marks[i].id);
    }
out:
    return st;
}

static dt_status check(dt_store *store, dt_call *call, dt_error *err)
{
    json_t *problems = json_array(), *object;
    const char **damages, *runs = find_runs_folder(call->arena, err);
    dt_run_mark *marks;
    int64_t count, runs_count;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_restore_runs(store);
    DT_TRY(dt_store_verify(store, &damages, &count, call->arena, err));
    for (int64_t i = 0; i < count; i++)
        add_problem(problems, "%s", damages[i]);
    if (count > 0)
        dt_report_note(call, "the history is damaged; repair it with 'dtrun store repair'");
    DT_TRY(dt_store_run_marks(store, &marks, &runs_count, call->arena, err));
    check_rows(problems, marks, runs_count, runs, call->arena);
    check_folders(problems, marks, runs_count, runs);
    check_repaired(problems, runs, call->arena);
    DT_TRY(check_journals(problems, store, marks, runs_count, err));
    call->exit_code = json_array_size(problems) > 0 ? DT_EXIT_FAILED : DT_EXIT_GOOD;
    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "runs", json_integer(runs_count));
        json_object_set(object, "problems", problems);
        DT_TRY(dt_report_json(object, err));
        goto out;
    }
    for (size_t i = 0; i < json_array_size(problems); i++)
        dt_strbuf_add_fmt(&text, "%s\n", json_string_value(json_array_get(problems, i)));
    dt_strbuf_add_fmt(&text, "%lld runs, %zu problems\n", (long long)runs_count,
                      json_array_size(problems));
    DT_TRY(dt_report_text(&text, err));
out:
    json_decref(problems);
    dt_strbuf_release(&text);
    return st;
}

static dt_status backup(dt_store *store, dt_call *call, dt_error *err)
{
    const char *path = call->args->operands[1];
    json_t *object;
    dt_status st;

    DT_TRY(dt_store_backup(store, path, err));
    dt_report_note(call, "copied the history to '%s', without checkpoints and logs", path);
    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "path", dt_json_text(path));
        DT_TRY(dt_report_json(object, err));
    }
out:
    return st;
}

static dt_status repair(dt_call *call, dt_error *err)
{
    dt_repaired done;
    json_t *object;
    dt_status st;

    DT_TRY(dt_repair_store(&done, call->arena, err));
    if (done.aside != NULL)
        dt_report_note(
            call,
            "rebuilt the damaged history: %lld runs, from %lld readable rows, the folders of the "
            "runs and their journals; the damaged file is kept as '%s'",
            (long long)done.runs, (long long)done.salvaged, done.aside);
    else
        dt_report_note(call, "the history is not damaged; added %lld missing rows from journals",
                       (long long)done.from_journals);
    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "runs", json_integer(done.runs));
        json_object_set_new(object, "damaged",
                            done.aside != NULL ? dt_json_text(done.aside) : json_null());
        json_object_set_new(object, "salvaged", json_integer(done.salvaged));
        json_object_set_new(object, "from_journals", json_integer(done.from_journals));
        DT_TRY(dt_report_json(object, err));
    }
out:
    return st;
}

static dt_status maintain(dt_call *call, dt_error *err)
{
    const char *what = call->args->operands[0];
    bool is_backup = strcmp(what, "backup") == 0;
    dt_store *store = NULL;
    dt_status st = DT_OK;

    if (!is_backup && strcmp(what, "check") != 0 && strcmp(what, "repair") != 0)
        DT_THROW(err, DT_ERR_USAGE, "'%s': expected check, repair, or backup FILE", what);
    if (is_backup && call->args->operands_count != 2)
        DT_THROW(err, DT_ERR_USAGE, "FILE is missing");
    if (!is_backup && call->args->operands_count != 1)
        DT_THROW(err, DT_ERR_USAGE, "%s takes no argument", what);
    if (strcmp(what, "repair") == 0)
        return repair(call, err);
    DT_TRY(dt_store_open_to_read(&store, NULL, err));
    DT_TRY(is_backup ? backup(store, call, err) : check(store, call, err));
out:
    dt_store_close(store);
    return st;
}

const dt_command dt_command_store = {
    .name = "store",
    .summary = "check, repair or back up the history",
    .operands = "check|repair|backup [FILE]",
    .takes = DT_OPERAND_WORD,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = 2,
    .notes =

        "check reads all of store.db and compares charts with points, and points with the\n"
        "journals of ended runs. It reports runs without a folder, folders without a run, and\n"
        "leftovers of removals. The exit code is 1 if there is any problem.\n"
        "\n"
        "repair makes a new store.db from the readable rows of a damaged one, the folders of the\n"
        "runs and their journals. The damaged file is kept. No run may be supervised during a\n"
        "repair. It also adds rows to an undamaged history that only a journal has.\n"
        "\n"
        "backup copies the history to FILE, which must not exist, while runs continue. It checks\n"
        "the copy and writes no FILE if the history is damaged (exit code 3). To restore a copy,\n"
        "replace store.db by it while nothing runs.\n",
    .run = maintain,
};
