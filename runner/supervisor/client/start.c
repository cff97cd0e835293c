/* start: starts a supervisor for a run that has none. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "runner/channel/detach.h"
#include "runner/channel/socket.h"
#include "runner/supervisor/folder/launch_env.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/supervisor.h"

#define READY_SECONDS 30.0
#define FILE_BYTES    ((int64_t)16 << 20) /* for store, journals and logs of a long run */

bool dt_supervisor_is_running(const char *run)
{
    const char *path;
    dt_arena arena;
    int lock = -1;
    dt_status st;

    dt_arena_init(&arena, 0);
    st = dt_run_path(&path, run, "supervisor.lock", &arena, NULL);
    if (st == DT_OK)
        st = dt_file_lock(&lock, path, NULL);
    if (lock >= 0)
        close(lock);
    dt_arena_release(&arena);
    return st == DT_ERR_BUSY;
}

/* A supervisor inherits this process's file size limit. If that is too small for the run
 * history, it would wait forever and keep out a supervisor without the limit. */
static dt_status check_file_limit(dt_arena *arena, dt_error *err)
{
    const char *state, *store;
    struct rlimit limit;
    struct stat info;
    int64_t need = FILE_BYTES;
    dt_status st = DT_OK;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return DT_OK;
    DT_TRY(dt_dir_make(&state, DT_DIR_STATE, arena, err));
    store = dt_arena_printf(arena, "%s/store.db", state);
    if (stat(store, &info) == 0)
        need += (int64_t)info.st_size;
    if ((int64_t)limit.rlim_cur < need)
        DT_THROW(err, DT_ERR_IO,
                 "the file size limit is %lld KiB, but the run history '%s' and the logs need up "
                 "to %lld KiB: raise the limit ('ulimit -f unlimited')",
                 (long long)limit.rlim_cur / 1024, store, (long long)need / 1024);
out:
    return st;
}

dt_status dt_supervisor_check_limits(dt_error *err)
{
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    st = check_file_limit(&arena, err);
    dt_arena_release(&arena);
    return st;
}

/* Fails if supervisors were started too often in a row without progress (channel/detach.h). */
static dt_status check_starts(const char *run, bool deliberate, dt_arena *arena, dt_error *err)
{
    const char *path, *log;
    dt_status st = DT_OK;
    char who[128];

    DT_TRY(dt_run_path(&path, run, DT_SUPERVISOR_STARTS, arena, err));
    DT_TRY(dt_run_path(&log, run, "supervisor.log", arena, err));
    snprintf(who, sizeof(who), "the supervisor of run '%.64s'", run);
    DT_TRY(dt_starts_check(path, deliberate ? DT_STARTS_MOST_DELIBERATE : DT_STARTS_MOST, who, log,
                           err));
out:
    return st;
}

bool dt_supervisor_is_broken(const char *run)
{
    const char *path;
    bool broken = false;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_run_path(&path, run, DT_SUPERVISOR_STARTS, &arena, NULL) == DT_OK)
        broken = dt_starts_are_spent(path) && !dt_supervisor_is_running(run);
    dt_arena_release(&arena);
    return broken;
}

static dt_status start(const char *run, const dt_detach_place *place, dt_error *err)
{
    const char *const argv[] = {"dtrun", "supervise", run, NULL};
    dt_error problem = DT_ERROR_INIT;
    const char *folder, *log, *starts;
    bool crashed;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, run, NULL, &arena, err));
    DT_TRY(dt_run_check_owner(run, folder, err));
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    DT_TRY(check_file_limit(&arena, err));
    DT_TRY(dt_run_path(&log, run, "supervisor.log", &arena, err));
    DT_TRY(dt_run_path(&starts, run, DT_SUPERVISOR_STARTS, &arena, err));
    crashed = dt_starts_follow_crash(log);
    st = dt_detach_start(argv, log, place, READY_SECONDS, &problem);
    if (st != DT_ERR_BUSY &&
        st != DT_ERR_USAGE) /* busy: another process supervises it; usage: the run has ended */
        dt_starts_add(starts, st != DT_OK || crashed);
    /* another process started one, this machine is slow, or ours died and was replaced */
    if (st == DT_ERR_BUSY || (st != DT_OK && dt_supervisor_is_running(run)))
        st = DT_OK;
    else if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    dt_arena_release(&arena);
    return st;
}

dt_status dt_supervisor_keep_environment(const char *run, const char *text, dt_error *err)
{
    const char *folder;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, run, NULL, &arena, err));
    DT_TRY(dt_run_check_owner(run, folder, err));
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    DT_TRY(dt_launch_env_save(folder, text, err));
out:
    dt_arena_release(&arena);
    return st;
}

dt_status dt_supervisor_start(const char *run, dt_error *err)
{
    const char *starts;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_run_path(&starts, run, DT_SUPERVISOR_STARTS, &arena, NULL) == DT_OK)
        dt_starts_clear(starts); /* started by a person: forget failed starts */
    dt_arena_release(&arena);
    return start(run, NULL, err);
}

/* Finds the value of XDG_STATE_HOME, or its default. */
static dt_status find_state_home(const char **out, dt_arena *arena, dt_error *err)
{
    const char *state;
    dt_status st = dt_dir_make(&state, DT_DIR_STATE, arena, err);

    if (st != DT_OK)
        return st;
    *out = dt_arena_printf(arena, "%.*s", (int)(strrchr(state, '/') - state), state);
    return DT_OK;
}

dt_status dt_supervisor_revive(const char *run, bool deliberate, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const char *folder, *state_home;
    dt_launch_env env;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, run, NULL, &arena, err));
    DT_TRY(dt_run_check_owner(run, folder, err));
    DT_TRY(check_starts(run, deliberate, &arena, err));
    DT_TRY(find_state_home(&state_home, &arena, err));
    if (dt_stop_mark_covers(folder, 0)) /* a supervisor could only write the end */
        DT_TRY(dt_run_check_room(&arena, err));
    st = dt_launch_env_for_revival(&env, folder, state_home, deliberate, &arena, &problem);
    if (st == DT_ERR_NOT_FOUND) { /* the file is missing */
        DT_TRY(start(run, NULL, err));
        goto out;
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    DT_TRY(start(run, &(dt_detach_place){env.items, env.directory, env.umask}, err));
out:
    dt_arena_release(&arena);
    return st;
}

dt_status dt_supervisor_ensure(const dt_run *run, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const char *folder;
    dt_arena arena;
    dt_status st;
    int fd = -1;

    if (dt_run_state_is_terminal(run->state) || run->state == DT_RUN_WAITING ||
        dt_supervisor_paused(run->id) != 0)
        return DT_OK; /* a paused one would only collect connections */
    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, run->id, NULL, &arena, err));
    st = dt_socket_connect(&fd, folder, "control.sock", NULL);
    if (st == DT_OK) {
        close(fd);
        goto out;
    }
    st = dt_supervisor_revive(run->id, false, &problem);
    if (st == DT_ERR_USAGE)
        st = DT_OK; /* the run has ended since the row was read */
    else if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    dt_arena_release(&arena);
    return st;
}
