#include "runner/sweep/resume.h"

#include <unistd.h>

#include "runner/sweep/drive.h"
#include "store/store.h"

enum { RECIPE_MAX_BYTES = 4 << 20 };

/* Marks what must be done for the point; *marked: there is something to do. */
static dt_status mark(bool *marked, dt_sweep_point *point, dt_store *store, dt_arena *arena,
                      dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st;
    dt_run run;

    *marked = point->run[0] == '\0';
    point->again = false;
    if (*marked || point->cut > 0) {
        point->problem = "";
        return DT_OK;
    }
    st = dt_store_run_find(store, &run, point->run, arena, &problem);
    if (st == DT_ERR_NOT_FOUND)
        return DT_OK; /* the run was removed */
    if (st != DT_OK)
        return DT_FAIL(err, st, "%s", problem.message);
    *marked = run.state != DT_RUN_FINISHED;
    point->again = *marked && dt_run_state_is_terminal(run.state);
    if (*marked)
        point->problem = "";
    return DT_OK;
}

/* Marks all points under the driver's lock, so that no driver runs meanwhile. */
static dt_status mark_all(int64_t *count, dt_sweep_group *group, dt_call *call, dt_error *err)
{
    const char *name = group->name;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    int lock = -1;

    DT_TRY(dt_group_hold(&lock, group, call->arena, err));
    DT_TRY(dt_group_read(group, name, call->arena, err));
    DT_TRY(dt_store_open(&store, NULL, err));
    for (int64_t i = 0; i < group->count; i++) {
        bool marked;

        DT_TRY(mark(&marked, &group->points[i], store, call->arena, err));
        *count += marked;
    }
    if (*count == 0)
        goto out;
    DT_TRY(dt_group_forget_stop(group, err));
    group->ended = false;
    DT_TRY(dt_group_write_progress(group, err));
out:
    dt_store_close(store);
    if (lock >= 0)
        close(lock);
    return st;
}

dt_status dt_group_resume(int64_t *count, dt_sweep_group *group, dt_call *call, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf text;

    *count = 0;
    dt_strbuf_init(&text);
    st = group->ended ? mark_all(count, group, call, &problem) : DT_ERR_BUSY;
    if (st == DT_ERR_BUSY)
        DT_THROW(
            err, DT_ERR_USAGE,
            "sweep '%s' continues: it can be resumed once it has ended ('dtrun stop %s' ends it)",
            group->name, group->name);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    if (*count == 0)
        goto out;
    DT_TRY(dt_group_read_recipe(&text, group, RECIPE_MAX_BYTES, err));
    DT_TRY(dt_drive_start(group, text.data, err));
out:
    dt_strbuf_release(&text);
    return st;
}
