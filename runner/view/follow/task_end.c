#include "runner/view/follow/task_end.h"

#include <string.h>

#include "base/file.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/folder/task_run.h"
#include "runner/view/follow/follow.h"
#include "runner/view/follow/follow_options.h"
#include "runner/view/runs/summary.h"

#define OUTPUT_MOST ((size_t)4 << 30)

/* Prints the output unless a file was named for it. */
static dt_status show(dt_strbuf *text, const dt_run *run, const dt_plan_task *task,
                      const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    const char *own;

    DT_TRY(dt_file_read(text, task->output, OUTPUT_MOST, err));
    if (call->json)
        return DT_OK;
    DT_TRY(dt_run_path(&own, run->id, DT_TASK_OUTPUT, call->arena, err));
    if (strcmp(own, task->output) != 0)
        dt_report_note(call, "run %s: %lld lines in '%s'", run->id, (long long)task->lines,
                       task->output);
    else
        st = dt_report_data(text, err);
out:
    return st;
}

static dt_status end(dt_strbuf *text, json_t **object, dt_store *store, const dt_run *run,
                     dt_call *call, dt_error *err)
{
    bool good = run->state == DT_RUN_FINISHED;
    dt_status st = DT_OK;
    dt_plan plan;

    DT_TRY(dt_task_plan(&plan, run, call->arena, err));
    if (good)
        DT_TRY(show(text, run, &plan.task, call, err));
    if (call->json) {
        DT_TRY(dt_summary_object(object, store, run, call->arena, err));
        json_object_set_new(*object, "output", dt_json_text(plan.task.output));
    } else if (!good) {
        DT_TRY(dt_summary_text(store, run, call->arena, err));
    }
    call->exit_code = dt_follow_exit_code(run);
out:
    return st;
}

dt_status dt_task_follow(dt_strbuf *text, json_t **object, dt_store *store, const char *run,
                         dt_call *call, dt_error *err)
{
    dt_follow_view view = dt_arguments_flag(call->args, "wait") ? DT_FOLLOW_LINES : DT_FOLLOW_AUTO;
    dt_status st = DT_OK;
    dt_run last;
    bool left;

    *object = NULL;
    if (dt_arguments_flag(call->args, "detach"))
        return dt_follow_started(store, run, call, err);
    DT_TRY(dt_follow(&last, &left, store, run, call->json ? DT_FOLLOW_QUIET : view,
                     DT_FOLLOW_FROM_START, call, err));
    if (left) {
        dt_follow_say_left(&last);
        call->exit_code = DT_EXIT_INTERRUPTED;
        goto out;
    }
    DT_TRY(end(text, object, store, &last, call, err));
out:
    return st;
}
