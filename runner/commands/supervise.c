/* dtrun supervise: runs the supervisor process of one run. Started by launch, resume, and any command that
 * finds an active run without a supervisor. --all-active starts the missing ones, for a timer
 * (packaging/systemd). Not for people.
 */
#include <stdio.h>

#include "base/log.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/gc/gc.h"
#include "runner/queue/queue.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/supervisor/supervisor.h"
#include "runner/view/runs/runs.h"

/* Starts a supervisor for every active run without one; a failure does not end the loop. */
static dt_status supervise_all(dt_call *call, dt_error *err)
{
    int64_t count, active = 0, alone = 0;
    dt_store *store = NULL;
    dt_status st;
    dt_run *runs;

    DT_TRY(dt_store_open(&store, NULL, err));
    dt_restore_runs(store);
    DT_TRY(dt_store_run_list(store, &runs, &count, -1, 0, call->arena, err));
    for (int64_t i = 0; i < count; i++) {
        if (dt_run_state_is_terminal(runs[i].state))
            continue;
        active++;
        alone += dt_runs_ensure(&runs[i], call) != DT_OK;
    }
    if (call->json)
        DT_TRY(dt_report_json(json_pack("{s:i, s:I, s:I}", "version", 1, "active",
                                        (json_int_t)active, "unsupervised", (json_int_t)alone),
                              err));
    call->exit_code = alone > 0 ? DT_EXIT_SYSTEM : DT_EXIT_GOOD;
out:
    dt_store_close(store);
    return st;
}

/* Supervises one run, then enforces the quotas; a quota that fails is only logged. */
static dt_status supervise_one(const char *run, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st;

    dt_supervisor_use_queue(&dt_queue_of_supervisors);
    st = dt_supervisor_main(run, err);

    if (st == DT_OK && dt_quotas_keep(run, &problem) != DT_OK)
        dt_log_warn("quota: %s", problem.message);
    return st;
}

static dt_status supervise(dt_call *call, dt_error *err)
{
    bool all = dt_arguments_flag(call->args, "all-active");

    if (all != (call->args->operands_count == 0))
        return DT_FAIL(err, DT_ERR_USAGE, "expected either RUN or --all-active");
    return all ? supervise_all(call, err) : supervise_one(call->args->operands[0], err);
}

static const dt_option options[] = {
    {.name = "all-active",
     .kind = DT_OPTION_FLAG,
     .help = "start a detached supervisor for every active run that has none"},
    {0},
};

const dt_command dt_command_supervise = {
    .name = "supervise",
    .summary = "supervise one run (started by other commands)",
    .operands = "[RUN]",
    .operands_max = 1,
    .options = options,
    .hidden = true,
    .run = supervise,
};
