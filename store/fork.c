/* fork: copies the curves of the parent into a run that starts from the parent's checkpoint. */
#include "store/store_int.h"

#include "base/banned.h"

static dt_status copy_metric(dt_store *store, const char *run, const char *from, const char *name,
                             int64_t step, dt_error *err)
{
    dt_status st = DT_OK;
    dt_metric *points;
    dt_arena arena;
    int64_t count;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_metric_list(store, &points, &count, from, name, -1, 0, &arena, err));
    for (int64_t i = 0; i < count && points[i].step <= step; i++)
        DT_TRY(dt_store_metric_add(store, run, 1, points[i].step, name, points[i].value,
                                   points[i].time_ms, err));
out:
    dt_arena_release(&arena);
    return st;
}

dt_status dt_store_run_copy_past(dt_store *store, const char *run, const char *from, int64_t step,
                                 dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    const char **names;
    dt_arena arena;
    int64_t count;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_metric_names(store, &names, &count, from, &arena, err));
    for (int64_t i = 0; i < count; i++)
        DT_TRY(copy_metric(store, run, from, names[i], step, err));
out:
    dt_arena_release(&arena);
    return dt_sql_group_end(&group, st, err);
}
