/* start: starts a driver for a group that has none. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "runner/channel/detach.h"
#include "runner/channel/starts.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/launch_env.h"
#include "runner/sweep/drive.h"

#define READY_SECONDS 30.0

static const char *starts_path(const char *folder, dt_arena *arena)
{
    return dt_arena_printf(arena, "%s/" DT_DRIVE_STARTS, folder);
}

static dt_status start(const char *name, const char *folder, const dt_detach_place *place,
                       dt_arena *arena, dt_error *err)
{
    const char *const argv[] = {"dtrun", "drive", name, NULL};
    const char *log = dt_arena_printf(arena, "%s/driver.log", folder);
    dt_error problem = DT_ERROR_INIT;
    const char *starts;
    bool crashed;
    dt_status st;

    starts = starts_path(folder, arena);
    crashed = dt_starts_follow_crash(log);
    st = dt_detach_start(argv, log, place, READY_SECONDS, &problem);
    if (st == DT_ERR_BUSY)
        return DT_OK; /* another process was faster */
    dt_starts_add(starts, st != DT_OK || crashed);
    if (st != DT_OK)
        DT_FAIL(err, st, "%s", problem.message);
    return st;
}

dt_status dt_drive_start(const dt_sweep_group *group, const char *text, dt_error *err)
{
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_launch_env_save(group->folder, text, err));
    DT_TRY(start(group->name, group->folder, NULL, &arena, err));
out:
    dt_arena_release(&arena);
    return st;
}

static bool is_driven(const char *folder, dt_arena *arena)
{
    const char *path = dt_arena_printf(arena, "%s/driver.lock", folder);
    int lock = -1;
    dt_status st = dt_file_lock(&lock, path, NULL);

    if (lock >= 0)
        close(lock);
    return st != DT_OK; /* a group that cannot be locked cannot be driven either */
}

/* Starts a driver if needed. An error without a message is ignored: the next command tries
 * again. */
static dt_status ensure(const char *name, dt_arena *arena, dt_error *err)
{
    const char *folder, *state, *starts;
    char who[128];
    dt_launch_env env;
    dt_status st;

    DT_TRY(dt_group_folder(&folder, name, arena, NULL));
    if (is_driven(folder, arena))
        return DT_OK;
    starts = starts_path(folder, arena);
    snprintf(who, sizeof(who), "the driver of sweep '%.64s'", name);
    DT_TRY(dt_starts_check(starts, DT_STARTS_MOST, who,
                           dt_arena_printf(arena, "%s/driver.log", folder), err));
    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, arena, NULL));
    state = dt_arena_printf(arena, "%.*s", (int)(strrchr(state, '/') - state), state);
    DT_TRY(dt_launch_env_for_revival(&env, folder, state, false, arena, NULL));
    DT_TRY(
        start(name, folder, &(dt_detach_place){env.items, env.directory, env.umask}, arena, NULL));
out:
    return st;
}

dt_status dt_drive_ensure(const char *name, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    st = ensure(name, &arena, &problem);
    dt_arena_release(&arena);
    return st == DT_OK || problem.code == DT_OK ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
}

void dt_drive_ensure_all(void)
{
    dt_error problem = DT_ERROR_INIT;
    const char **names;
    int64_t count;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_group_list(&names, &count, false, &arena, NULL) == DT_OK)
        for (int64_t i = 0; i < count; i++) {
            if (dt_drive_ensure(names[i], &problem) != DT_OK)
                dt_report_say("dtrun: %s", problem.message);
            dt_error_clear(&problem);
        }
    dt_arena_release(&arena);
}
