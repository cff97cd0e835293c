#include "engine/checkpoint/checkpoint_int.h"

#include "base/log.h"
#include "engine/checkpoint/list.h"

static dt_status verify(const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint *opened = NULL;

    DT_TRY(dt_checkpoint_open(&opened, path, err));
    DT_TRY(dt_checkpoint_verify(opened, err));
out:
    dt_checkpoint_close(opened);
    return st;
}

dt_status dt_checkpoint_find_newest_fit(const char **path, const char *parent,
                                        dt_checkpoint_fit_fn *fits, const void *context,
                                        dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint_entry *entries;
    int64_t count;

    *path = NULL;
    DT_TRY(dt_checkpoint_list(&entries, &count, parent, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (!entries[i].opens && !entries[i].name.partial)
            dt_log_warn("checkpoint skipped: %s", entries[i].problem);
    for (int64_t i = 0; i < count && *path == NULL; i++) {
        dt_error problem = DT_ERROR_INIT;

        if (!entries[i].opens || !entries[i].whole || !fits(context, entries[i].path))
            continue;
        if (verify(entries[i].path, &problem) == DT_OK)
            *path = entries[i].path;
        else if (problem.code == DT_ERR_NOMEM)
            DT_THROW(err, problem.code, "%s", problem.message);
        else
            dt_log_warn("checkpoint skipped: %s", problem.message);
    }
out:
    return st;
}

static bool any_fits(const void *unused, const char *path)
{
    return true;
}

dt_status dt_checkpoint_find_newest(const char **path, const char *parent, dt_arena *arena,
                                    dt_error *err)
{
    return dt_checkpoint_find_newest_fit(path, parent, any_fits, NULL, arena, err);
}
