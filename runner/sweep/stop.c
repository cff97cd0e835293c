/* stop: stops a sweep, through its driver, or if nothing can be written, each of its runs
 * directly. */
#include "runner/stop/stop.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/sweep/begin.h"
#include "runner/sweep/report.h"

/* Stops the runs that have not ended, without the history, which cannot be written. */
static dt_status stop_points(const char *name, bool now, const dt_error *why, dt_call *call,
                             dt_error *err)
{
    dt_store *store = NULL;
    const char **runs;
    dt_status st = DT_OK;
    dt_sweep_group group;
    int64_t count = 0;
    dt_run run;

    DT_TRY(dt_group_read(&group, name, call->arena, err));
    if (dt_store_open(&store, NULL, NULL) == DT_OK) /* for points whose run is not recorded yet */
        (void)dt_points_find(&group, store, call->arena, NULL);
    runs = dt_arena_alloc_array(call->arena, (size_t)group.count, sizeof(*runs));
    for (int64_t i = 0; i < group.count; i++) {
        const char *id = group.points[i].run;
        bool known = store != NULL && id[0] != '\0' &&
                     dt_store_run_find(store, &run, id, call->arena, NULL) == DT_OK;

        if (id[0] != '\0' && !(known && dt_run_state_is_terminal(run.state)))
            runs[count++] = id;
    }
    DT_TRY(dt_stop_all_without_history(runs, count, now, why, call, err));
    dt_report_note(
        call, "the sweep ends once there is disk space to record its end: see 'dtrun status %s'",
        name);
out:
    dt_store_close(store);
    return st;
}

dt_status dt_group_stop(const dt_sweep_group *group, bool now, dt_call *call, dt_error *err)
{
    dt_error full = DT_ERROR_INIT, unasked = DT_ERROR_INIT;
    dt_status st = DT_OK, asked = DT_OK;

    if (!group->ended) {
        asked = dt_group_ask_stop(group, now, &unasked);
        if (asked != DT_OK || dt_run_check_room(call->arena, &full) != DT_OK) {
            DT_TRY(stop_points(group->name, now, asked != DT_OK ? &unasked : &full, call, err));
            if (asked != DT_OK) /* otherwise more points start once there is disk space */
                DT_THROW(err, asked, "%s", unasked.message);
            goto out;
        }
    }
    DT_TRY(dt_group_follow(group->name, call, err));
    if (call->exit_code == DT_EXIT_STOPPED)
        call->exit_code = DT_EXIT_GOOD; /* as requested */
out:
    return st;
}
