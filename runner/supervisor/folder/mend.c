#include "runner/supervisor/folder/mend.h"

#include <dirent.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "runner/supervisor/folder/rebuild.h"
#include "runner/supervisor/folder/run_folder.h"

#include "base/banned.h"

static dt_status mend(bool *rebuilt, dt_store *store, const char *run, dt_arena *arena,
                      dt_error *err)
{
    const char *folder, *path;
    dt_status st = DT_OK;
    int lock = -1;
    bool needed;

    *rebuilt = false;
    DT_TRY(dt_rebuild_is_needed(&needed, store, run, err));
    if (!needed)
        goto out;
    DT_TRY(dt_run_path(&folder, run, NULL, arena, err));
    DT_TRY(dt_run_check_owner(run, folder, err));
    DT_TRY(dt_run_path(&path, run, "supervisor.lock", arena, err));
    if (dt_file_lock(&lock, path, NULL) == DT_OK)
        DT_TRY(dt_rebuild_run(rebuilt, store, run, err));
out:
    if (lock >= 0)
        close(lock);
    return st;
}

bool dt_mend_run(dt_store *store, const char *run)
{
    dt_error problem = DT_ERROR_INIT;
    bool rebuilt = false;
    dt_arena arena;

    if (!dt_store_can_write(store))
        return false;
    dt_arena_init(&arena, 0);
    if (mend(&rebuilt, store, run, &arena, &problem) != DT_OK)
        dt_log_warn("%s", problem.message);
    dt_arena_release(&arena);
    return rebuilt;
}

void dt_mend_all(dt_store *store)
{
    const char *state, *runs;
    struct dirent *entry;
    dt_arena arena;
    DIR *dir = NULL;

    dt_arena_init(&arena, 0);
    if (dt_dir_path(&state, DT_DIR_STATE, &arena, NULL) == DT_OK &&
        (runs = dt_arena_printf(&arena, "%s/runs", state)) != NULL)
        dir = opendir(runs);
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            (void)dt_mend_run(store, entry->d_name);
    if (dir != NULL)
        closedir(dir);
    dt_arena_release(&arena);
}
