/* dtrun rm: removes runs with their history, logs and checkpoints. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/term/term.h"
#include "runner/view/runs/runs.h"
#include "store/event.h"

typedef struct removal {
    dt_run run;
    int64_t bytes;
    const char *rest; /* folder of an interrupted removal, without rows; else NULL */
} removal;

/* Refuses a run that may have processes on a lost node: stop needs the folder to find them. */
static dt_status check_nodes(dt_store *store, const dt_run *run, const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_node *nodes;
    int64_t count;

    DT_TRY(dt_store_node_list(store, &nodes, &count, run->id, run->attempt, call->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (strcmp(nodes[i].state, "lost") == 0 && !dt_arguments_flag(call->args, "force"))
            DT_THROW(err, DT_ERR_USAGE,
                     "run '%s' may still have processes on '%s': end them with 'dtrun stop %s', "
                     "or remove the run with --force",
                     run->id, nodes[i].name, run->id);
out:
    return st;
}

static dt_status look(removal *out, dt_store *store, const char *ref, const dt_call *call,
                      dt_error *err)
{
    dt_error unknown = DT_ERROR_INIT;
    const char *folder;
    dt_status st;

    st = dt_runs_find(store, &out->run, ref, call, &unknown);
    if (st == DT_ERR_NOT_FOUND) {
        DT_TRY(dt_removal_find(&out->run.id, &out->rest, ref, call->arena, err));
        out->run.name = ref;
    }
    if (out->rest != NULL) {
        out->bytes = dt_tree_bytes(out->rest);
        goto out;
    }
    if (unknown.code != DT_OK)
        DT_THROW(err, unknown.code, "%s", unknown.message);
    if (!dt_run_state_is_terminal(out->run.state))
        DT_THROW(err, DT_ERR_USAGE, "run '%s' is %s; stop it first ('dtrun stop %s')", out->run.id,
                 dt_run_state_name(out->run.state), out->run.id);
    DT_TRY(check_nodes(store, &out->run, call, err));
    DT_TRY(dt_run_path(&folder, out->run.id, NULL, call->arena, err));
    out->bytes = dt_tree_bytes(folder);
out:
    return st;
}

static dt_status ask(const removal *runs, size_t count, const dt_call *call, dt_error *err)
{
    char size[DT_FORMAT_SIZE], answer[16] = "";
    int64_t bytes = 0;

    if (dt_arguments_flag(call->args, "yes"))
        return DT_OK;
    if (!isatty(STDIN_FILENO))
        return DT_FAIL(err, DT_ERR_USAGE, "stdin is not a terminal: use --yes to remove");
    for (size_t i = 0; i < count; i++) {
        bytes += runs[i].bytes;
        if (runs[i].rest != NULL)
            dt_report_say("  %s  leftover files", runs[i].run.id);
        else
            dt_report_say("  %s  %s  %s at step %lld  %s", runs[i].run.id, runs[i].run.name,
                          dt_run_state_name(runs[i].run.state), (long long)runs[i].run.step,
                          dt_format_bytes(size, sizeof(size), (double)runs[i].bytes));
    }
    dt_report_say("remove %s permanently, with history, logs and checkpoints: %s? [y/N]",
                  count == 1 ? "this run" : "these runs",
                  dt_format_bytes(size, sizeof(size), (double)bytes));
    if (fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return DT_OK;
    return DT_FAIL(err, DT_ERR_USAGE, "nothing was removed");
}

/* Makes the entry of a run that is or would be removed. */
static json_t *removal_json(dt_store *store, const removal *one, const dt_call *call)
{
    json_t *out = json_pack("{s:s, s:s, s:I, s:I}", "run", one->run.id, "name", one->run.name,
                            "bytes", (json_int_t)one->bytes, "step", (json_int_t)one->run.step);
    const char *folder = one->rest;
    dt_store_checkpoint *all;
    int64_t count, kept = 0;

    if (one->rest == NULL) {
        (void)dt_run_path(&folder, one->run.id, NULL, call->arena, NULL);
        if (dt_store_checkpoint_list(store, &all, &count, one->run.id, call->arena, NULL) == DT_OK)
            for (int64_t i = 0; i < count; i++)
                kept += dt_store_checkpoint_exists(&all[i]);
    }
    json_object_set_new(out, "checkpoints", json_integer(kept));
    json_object_set_new(out, "folder", dt_json_text(folder != NULL ? folder : ""));
    return out;
}

/* Says what would be removed. */
static void say_removal(const removal *one, const dt_call *call)
{
    char size[DT_FORMAT_SIZE];

    dt_report_note(
        call, "would remove run '%s' (%s, %s at step %lld): %s", one->run.id, one->run.name,
        one->rest != NULL ? "leftover files" : dt_run_state_name(one->run.state),
        (long long)one->run.step, dt_format_bytes(size, sizeof(size), (double)one->bytes));
}

static void warn(const char *message)
{
    dt_report_say("%s", message);
}

static dt_status remove_runs(dt_call *call, dt_error *err)
{
    size_t count = (size_t)call->args->operands_count;
    removal *runs = dt_arena_alloc_array(call->arena, count, sizeof(runs[0]));
    bool dry = dt_arguments_flag(call->args, "dry-run");
    json_t *removed = json_array(), *object;
    dt_store *store = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_store_open(&store, NULL, err));
    for (size_t i = 0; i < count; i++) {
        DT_TRY(look(&runs[i], store, call->args->operands[i], call, err));
        for (size_t j = 0; j < i; j++)
            if (strcmp(runs[j].run.id, runs[i].run.id) == 0)
                DT_THROW(err, DT_ERR_USAGE, "run '%s' is given twice", runs[i].run.id);
    }
    if (!dry)
        DT_TRY(ask(runs, count, call, err));
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(removed, removal_json(store, &runs[i], call));
        if (dry) {
            say_removal(&runs[i], call);
            continue;
        }
        if (runs[i].rest == NULL)
            DT_TRY(dt_run_wipe_nodes(&runs[i].run, dt_arguments_flag(call->args, "force"), warn,
                                     call->arena, err));
        DT_TRY(runs[i].rest != NULL ? dt_removal_finish(runs[i].rest, err)
                                    : dt_run_remove(store, runs[i].run.id, call->arena, err));
        dt_report_note(call, "removed run '%s'", runs[i].run.id);
    }
    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "dry_run", json_boolean(dry));
        json_object_set(object, "removed", removed);
        DT_TRY(dt_report_json(object, err));
    }
out:
    json_decref(removed);
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "yes", .letter = 'y', .kind = DT_OPTION_FLAG, .help = "do not ask"},
    {.name = "dry-run",
     .kind = DT_OPTION_FLAG,
     .help = "print what would be removed, and remove nothing"},
    {.name = "force",
     .kind = DT_OPTION_FLAG,
     .help =
         "also remove a run that may have processes on a lost node, or files on a node that does "
         "not answer"},
    {0},
};

const dt_command dt_command_rm = {
    .name = "rm",
    .summary = "remove runs: history, logs and checkpoints",
    .operands = "RUN...",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =

        "Lists what will be removed, and asks. A run that has not ended is refused. Forks of a\n"
        "run have their own history and checkpoints, and stay. Only the run's folder, its rows in\n"
        "the history and what its command left on other machines are removed, no recipe and no\n"
        "data. A run with files on a machine that does not answer is refused. The rows are\n"
        "removed first, in one transaction; if a damaged history prevents that, the files stay\n"
        "too. If some files cannot be removed, run the same command again.\n",
    .run = remove_runs,
};
