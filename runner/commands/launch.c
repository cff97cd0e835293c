/* dtrun launch: starts a supervised run, or a sweep, from a recipe. */
#include <math.h>
#include <unistd.h>

#include "recipes/fields/fields.h"
#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/cli/tags.h"
#include "runner/gc/gc.h"
#include "runner/launch/attempt.h"
#include "runner/launch/estimate.h"
#include "runner/launch/nodes.h"
#include "runner/launch/preflight.h"
#include "runner/launch/task.h"
#include "runner/queue/queue.h"
#include "runner/stop/stop.h"
#include "runner/sweep/sweep.h"
#include "runner/view/follow/follow.h"

/* Launches a sweep and follows it; with --detach prints its name only. */
static dt_status launch_sweep(const dt_recipe_source *source, const dt_labels *labels,
                              const dt_queue_wish *wish, dt_call *call, dt_error *err)
{
    const char *name;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_sweep_launch(&name, source, labels, wish, call, err));
    if (!dt_arguments_flag(call->args, "detach")) {
        dt_report_note(call, "sweep '%s': %lld runs; Ctrl-C detaches", name,
                       (long long)source->sweep->points);
        DT_TRY(dt_group_follow(name, call, err));
    } else if (call->json) {
        DT_TRY(dt_report_json(json_pack("{s:i, s:s, s:I}", "version", 1, "group", name, "points",
                                        (json_int_t)source->sweep->points),
                              err));
    } else {
        dt_strbuf_add_fmt(&text, "%s\n", name);
        DT_TRY(dt_report_text(&text, err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

/* Checks everything here and on the nodes, or with --gpus-as against the data sheet of a GPU. */
static dt_status check(dt_preflight *flight, const dt_gpu_spec **gpu, const dt_recipe *recipe,
                       const dt_recipe_source *source, const dt_call *call, dt_error *err)
{
    const dt_value *as = dt_arguments_get(call->args, "gpus-as");
    dt_status st = DT_OK;

    *gpu = NULL;
    if (as->given) {
        DT_TRY(dt_run_estimate_preflight(flight, gpu, recipe, source, as->text, call->arena, err));
        DT_TRY(dt_run_estimate_check_gpu(flight, *gpu, err));
        return dt_weights_preflight(flight, call->arena, err);
    }
    DT_TRY(dt_preflight_check(flight, recipe, source, call->arena, err));
    DT_TRY(dt_weights_preflight(flight, call->arena, err));
    DT_TRY(dt_nodes_check(flight, call->args->operands[0], call, err));
out:
    return st;
}

/* Launches a recipe whose task is to generate or to score. */
static dt_status launch_task(const dt_recipe *recipe, const dt_recipe_source *source,
                             const dt_labels *labels, dt_call *call, dt_error *err)
{
    json_t *object = NULL;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_preflight flight;
    const char *run;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (dt_arguments_flag(call->args, "dry-run")) {
        DT_TRY(dt_task_preflight(&flight, recipe, source, call, err));
        DT_TRY(dt_dry_run_print_task(&flight, call, err));
        goto out;
    }
    DT_TRY(dt_task_launch_recipe(&run, recipe, source, labels, call, err));
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(dt_task_follow(&text, &object, store, run, call, err));
    if (object != NULL)
        DT_TRY(dt_report_json(json_incref(object), err));
out:
    json_decref(object);
    dt_store_close(store);
    dt_strbuf_release(&text);
    return st;
}

static void set_name(dt_call *call)
{
    const dt_value *name = dt_arguments_get(call->args, "name");

    if (name->given)
        dt_add_set(call, dt_arena_printf(call->arena, "name=%s", name->text));
}

static dt_status launch(dt_call *call, dt_error *err)
{
    dt_recipe_source source;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_labels labels = {0};
    dt_preflight flight;
    dt_recipe recipe;
    const dt_gpu_spec *gpu;
    const char *run, *nodes;
    dt_run_estimate estimate = {.seconds_high = NAN};
    dt_queue_wish wish;
    bool trains;

    DT_TRY(dt_follow_options_check(call, err));
    DT_TRY(dt_quotas_check(err));
    if (dt_arguments_get(call->args, "gpus-as")->given && !dt_arguments_flag(call->args, "dry-run"))
        DT_THROW(err, DT_ERR_USAGE, "--gpus-as needs --dry-run: a run uses the GPUs of its nodes");
    DT_TRY(dt_label_options_read(&labels, call, err));
    DT_TRY(dt_queue_wish_read(&wish, call, err));
    set_name(call);
    DT_TRY(dt_read_recipe(&recipe, &source, call->args->operands[0], call, err));
    if (wish.queues) {
        DT_TRY(dt_queue_take_recipe(&nodes, &wish, &recipe, &source, call, err));
        if (nodes != NULL) {
            dt_add_set(call, nodes);
            DT_TRY(dt_read_recipe(&recipe, &source, call->args->operands[0], call, err));
        }
    }
    if (dt_task_has_lines(recipe.task))
        return launch_task(&recipe, &source, &labels, call, err);
    trains = recipe.task == DT_TASK_TRAIN;
    if (!trains && dt_arguments_get(call->args, "gpus-as")->given)
        DT_THROW(err, DT_ERR_USAGE, "--gpus-as is only for recipes that train");
    if (source.sweep->points > 0 && !dt_arguments_flag(call->args, "dry-run"))
        return launch_sweep(&source, &labels, &wish, call, err);
    DT_TRY(check(&flight, &gpu, &recipe, &source, call, err));
    if (trains)
        DT_TRY(dt_run_estimate_make(&estimate, &flight, gpu, call->arena, err));
    if (dt_arguments_flag(call->args, "dry-run")) {
        DT_TRY(trains ? dt_dry_run_print(&estimate, call, err)
                      : dt_dry_run_print_command(&flight, call, err));
        goto out;
    }
    if (trains && !dt_arguments_flag(call->args, "detach") &&
        (dt_arguments_flag(call->args, "wait") || !isatty(STDOUT_FILENO))) /* no live view */
        dt_run_estimate_note(&estimate, call);
    dt_interrupt_catch(); /* from here on Ctrl-C never leaves half of a run */
    DT_TRY(dt_store_open(&store, NULL, err));
    if (!wish.queues)
        (void)dt_orphans_settle(store, flight.plan.node_names, flight.plan.node_count, call->arena,
                                NULL);
    DT_TRY(dt_queue_launch(&run, store, &source, &labels, &wish, estimate.seconds_high, &flight,
                           call, err));
    DT_TRY(dt_follow_as_asked(store, run, 0, call, err));
out:
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    DT_RECIPE_OPTIONS("override a recipe value, as in --set optimizer.lr=1e-4"),
    {.name = "name",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .help = "name of the run; of a sweep: its runs are NAME-1, NAME-2, ..."},
    DT_LABEL_OPTIONS,
    DT_FOLLOW_OPTIONS,
    DT_QUEUE_OPTIONS,
    {.name = "dry-run",
     .letter = 'n',
     .kind = DT_OPTION_FLAG,
     .help = "check everything, print what would be started, start nothing"},
    DT_GPUS_AS_OPTION("with --dry-run: "),
    {0},
};

const dt_command dt_command_launch = {
    .name = "launch",
    .summary = "start a run from a recipe and follow it",
    .operands = "RECIPE",
    .takes = DT_OPERAND_FILE,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =

        "Without --wait or --detach the run is followed: a live view on a terminal, plain lines\n"
        "elsewhere. Ctrl-C detaches with exit code 130 and the run continues; 'dtrun status\n"
        "--watch RUN' follows it again.\n"
        "\n"
        "The recipe, its data, the nodes, their memory and their disks are checked before\n"
        "anything is started. Nodes need only an sshd; docs/nodes.md lists what is copied there.\n"
        "The exit code is that of the run. With --json the object at the end has at least run,\n"
        "state, steps, loss, valid_loss and seconds.\n"
        "\n"
        "nodes: slurm:4 submits a Slurm job, waits for it and releases it at the end; nodes:\n"
        "slurm uses the machines of the surrounding Slurm job (docs/slurm.md). Data with https\n"
        "URLs are downloaded to ~/.cache/dtrun/data first; interrupted downloads resume.\n"
        "\n"
        "A recipe with a 'sweep' is launched as a group of runs NAME-1, NAME-2, ..., one after\n"
        "another, or search.at_once at a time. --dry-run checks the first.\n"
        "\n"
        "A recipe with 'task: generate' or 'task: score' does what `dtrun generate` and `dtrun\n"
        "score` with --nodes do: its ranks share the lines of lines.input, with a checkpoint of\n"
        "lines.run. Without lines.output the result is printed at the end.\n"
        "\n"
        "A recipe with a 'command' runs that program instead of dtrun's own training\n"
        "(docs/command.md).\n",
    .run = launch,
};
