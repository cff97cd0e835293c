#include "runner/view/follow/follow_options.h"

#include <stdio.h>

#include "runner/cli/report.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"

dt_status dt_follow_options_check(const dt_call *call, dt_error *err)
{
    if (dt_arguments_flag(call->args, "wait") && dt_arguments_flag(call->args, "detach"))
        return DT_FAIL(err, DT_ERR_USAGE, "--wait and --detach cannot be combined");
    if (dt_arguments_flag(call->args, "log-steps") && dt_arguments_flag(call->args, "detach"))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--log-steps and --detach cannot be combined; use 'dtrun logs "
                       "--steps -f RUN'");
    return DT_OK;
}

dt_status dt_follow_started(dt_store *store, const char *id, const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_run run;

    dt_strbuf_init(&text);
    DT_TRY(dt_store_run_find(store, &run, id, call->arena, err));
    if (call->json) {
        DT_TRY(dt_report_json(dt_runs_to_json(&run), err));
    } else {
        dt_strbuf_add_fmt(&text, "%s\n", id);
        DT_TRY(dt_report_text(&text, err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_follow_as_asked(dt_store *store, const char *run, dt_call *call, dt_error *err)
{
    bool wait = dt_arguments_flag(call->args, "wait");
    dt_follow_view view = DT_FOLLOW_AUTO;

    if (dt_arguments_flag(call->args, "detach"))
        return dt_follow_started(store, run, call, err);
    if (dt_arguments_flag(call->args, "log-steps"))
        view = DT_FOLLOW_STEPS;
    else if (wait)
        view = call->json ? DT_FOLLOW_QUIET : DT_FOLLOW_LINES;
    return dt_follow_to_end(store, run, view, DT_FOLLOW_FROM_START, call, err);
}
