/* dtrun resume: starts the next attempt of a run, from its newest undamaged checkpoint. */
#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/gc/gc.h"
#include "runner/launch/attempt.h"
#include "runner/launch/existing_run.h"
#include "runner/launch/task.h"
#include "runner/queue/queue.h"
#include "runner/stop/stop.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/sweep/sweep.h"
#include "runner/verify/receipt.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"

#define RECEIPT_SECONDS 5.0 /* longest wait for the first step before the run is followed */

/* Resumes a sweep. Options that change a recipe are refused: they are for one run. */
static dt_status resume_sweep(dt_sweep_group *group, dt_call *call, dt_error *err)
{
    static const char *const of_a_run[] = {"set", "from", "new-data", "queue"};
    dt_store *store = NULL;
    dt_status st = DT_OK;
    int64_t count;

    for (size_t i = 0; i < sizeof(of_a_run) / sizeof(of_a_run[0]); i++)
        if (dt_arguments_get(call->args, of_a_run[i])->given)
            DT_THROW(err, DT_ERR_USAGE, "--%s does not apply to '%s', which is a sweep",
                     of_a_run[i], group->name);
    DT_TRY(dt_group_resume(&count, group, call, err));
    dt_report_note(call, "sweep '%s': %lld of %lld runs resumed or started", group->name,
                   (long long)count, (long long)group->count);
    if (count > 0 && !dt_arguments_flag(call->args, "detach")) {
        DT_TRY(dt_group_follow(group->name, call, err));
        goto out;
    }
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(dt_group_print(group, store, call, err));
out:
    dt_store_close(store);
    return st;
}

/* Checks everything before the next attempt of a run that trains, or of a command. *path: its checkpoint. */
static dt_status check(dt_preflight *flight, dt_budget_place *at, const char **path,
                       dt_origins *origins, dt_store *store, dt_run *run, dt_call *call,
                       dt_error *err)
{
    dt_checkpoint *checkpoint = NULL;
    dt_status st = DT_OK;
    dt_recipe recipe;

    *path = "";
    if (dt_task_of(run) != NULL)
        return dt_program_preflight(flight, at, origins, store, run, call, err);
    DT_TRY(dt_existing_run_recipe(&recipe, origins, store, run, call, err));
    DT_TRY(dt_existing_run_checkpoint(&checkpoint, path, store, run,
                                      dt_arguments_get(call->args, "from")->text, call->arena,
                                      err));
    DT_TRY(
        dt_existing_run_preflight(flight, at, &recipe, origins, run, checkpoint, *path, call, err));
out:
    dt_checkpoint_close(checkpoint);
    return st;
}

static dt_status resume(dt_call *call, dt_error *err)
{
    dt_store *store = NULL;
    dt_budget_place at;
    const char *path;
    dt_status st = DT_OK;
    dt_origins origins;
    dt_sweep_group group;
    dt_queue_wish wish;
    dt_preflight flight;
    dt_receipt receipt = {.done = true};
    dt_run run;

    DT_TRY(dt_follow_options_check(call, err));
    DT_TRY(dt_queue_wish_read(&wish, call, err));
    DT_TRY(dt_quotas_check(err));
    if (dt_group_is_meant(&group, call->args->operands[0], call))
        return resume_sweep(&group, call, err);
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    if (!dt_run_state_is_terminal(run.state))
        DT_THROW(err, DT_ERR_USAGE,
                 "run '%s' is %s; it can be resumed after it has ended ('dtrun stop %s')", run.id,
                 dt_run_state_name(run.state), run.id);
    if (dt_task_of_lines(&run)) {
        if (wish.queues)
            DT_THROW(err, DT_ERR_USAGE, "--queue is for runs that train or run a command");
        DT_TRY(dt_task_resume(store, &run, call, err));
        DT_TRY(dt_follow_as_asked(store, run.id, 0, call, err));
        goto out;
    }
    DT_TRY(check(&flight, &at, &path, &origins, store, &run, call, err));
    if (!wish.queues && dt_task_of(&run) == NULL)
        (void)dt_orphans_settle(store, flight.plan.node_names, flight.plan.node_count, call->arena,
                                NULL);
    dt_interrupt_catch(); /* from here on Ctrl-C never leaves half of an attempt */
    if (dt_task_of(&run) == NULL)
        dt_receipt_begin(&receipt, &run, path, call);
    DT_TRY(dt_queue_resume(store, &run, path, &at, &wish, &flight, call, err));
    if (!dt_arguments_flag(call->args, "detach") && !flight.waits)
        dt_receipt_end(&receipt, store, flight.plan.attempt, RECEIPT_SECONDS, call);
    DT_TRY(dt_follow_as_asked(store, run.id, flight.plan.attempt, call, err));
    if (!dt_arguments_flag(call->args, "detach")) /* started late */
        dt_receipt_end(&receipt, store, flight.plan.attempt, 0, call);
out:
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "set",
     .letter = 's',
     .kind = DT_OPTION_LIST,
     .value = DT_ASSIGNMENT,
     .help = "override a recipe value from here on, as in --set schedule.steps=4000"},
    DT_STRICT_OPTION,
    {.name = "from",
     .kind = DT_OPTION_TEXT,
     .value = "STEP",
     .help = "go back to the checkpoint of this step, or to the 'best' one"},
    DT_EXISTING_RUN_OPTIONS,
    DT_FOLLOW_OPTIONS,
    DT_QUEUE_OPTIONS,
    {0},
};

const dt_command dt_command_resume = {
    .name = "resume",
    .summary = "continue an ended run from its newest checkpoint",
    .operands = "RUN",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =

        "The run keeps its id and gets another attempt. Damaged checkpoints are skipped. A run\n"
        "that was stopped and resumed reaches the same numbers as one that was never stopped. A\n"
        "finished run can be resumed with more steps.\n"
        "\n"
        "RUN can be the name of a sweep: its failed and stopped runs are resumed, and its runs\n"
        "that were refused or never started are launched. Runs that finished or were ended by\n"
        "early_stop stay as they are.\n"
        "\n"
        "With --from the run goes back to an earlier step: what came after it stays in the logs,\n"
        "but is no longer part of the history. 'dtrun fork' starts another run instead.\n"
        "\n"
        "An attempt that fails before its first step changes nothing: a finished run stays\n"
        "finished, and the next resume uses the previous recipe.\n"
        "\n"
        "A receipt says where the data and the random numbers continue, and whether the first\n"
        "step equals the record to the bit, if an earlier attempt did that step. 'dtrun verify'\n"
        "compares more steps.\n"
        "\n"
        "Learning rate, length, evaluation, nodes, ranks, strategy and precision can change.\n"
        "Another number of ranks changes the tokens of a step, which resume reports; batch.total\n"
        "keeps them. The model cannot change. Without --new-data neither can the meaning of a\n"
        "position in the data: the content and order of the files, data.split, data.tail,\n"
        "batch.tokens and the seed. With --new-data the data and the epochs start from the\n"
        "beginning; the tokenizer stays. A run of generate or score computes its missing lines,\n"
        "and takes no --set. With --new-model the computation can change (rope_theta, norm_eps,\n"
        "activation, heads, ...): training continues from the same parameters.\n"
        "\n"
        "A run of a command gets another attempt of the command, with the words of 'resume' and\n"
        "the newest of its 'checkpoints', or that of --from.\n",
    .run = resume,
};
