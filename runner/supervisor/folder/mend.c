#define _GNU_SOURCE
#include "runner/supervisor/folder/mend.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int by_id(const void *key, const void *mark)
{
    return strcmp(key, ((const dt_run_mark *)mark)->id);
}

/* Whether the store has all of it, told without opening a file: its newest attempt has ended there, and
 * the folder has none after it. */
static bool is_settled(const dt_run_mark *marks, int64_t count, DIR *runs, const char *run)
{
    const dt_run_mark *mark = bsearch(run, marks, (size_t)count, sizeof(marks[0]), by_id);
    char next[300];

    if (mark == NULL || !mark->ended)
        return false;
    snprintf(next, sizeof(next), "%s/attempt-%lld", run, (long long)mark->attempt + 1);
    return faccessat(dirfd(runs), next, F_OK, 0) != 0;
}

void dt_mend_all(dt_store *store)
{
    const char *state, *runs;
    struct dirent *entry;
    dt_run_mark *marks;
    dt_arena arena;
    int64_t count;
    DIR *dir = NULL;

    dt_arena_init(&arena, 0);
    if (dt_dir_path(&state, DT_DIR_STATE, &arena, NULL) == DT_OK &&
        (runs = dt_arena_printf(&arena, "%s/runs", state)) != NULL)
        dir = opendir(runs);
    if (dt_store_run_marks(store, &marks, &count, &arena, NULL) != DT_OK)
        count = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && !is_settled(marks, count, dir, entry->d_name))
            (void)dt_mend_run(store, entry->d_name);
    if (dir != NULL)
        closedir(dir);
    dt_arena_release(&arena);
}
