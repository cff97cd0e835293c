/* start: a supervisor for a run, from whatever command found it without one. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/proc_stat.h"
#include "runner/channel/detach.h"
#include "runner/channel/socket.h"
#include "runner/supervisor/client/client_int.h"
#include "runner/supervisor/folder/launch_env.h"
#include "runner/supervisor/folder/room.h"
#include "runner/supervisor/folder/stop_mark.h"
#include "runner/supervisor/supervisor.h"

#include "base/banned.h"

#define READY_SECONDS 30.0

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

int64_t dt_supervisor_paused(const char *run)
{
    dt_proc_stat stat;
    const char *path;
    dt_arena arena;
    pid_t pid = 0;

    dt_arena_init(&arena, 0);
    if (dt_run_path(&path, run, "supervisor.lock", &arena, NULL) == DT_OK)
        pid = dt_lock_holder_find(path, run);
    dt_arena_release(&arena);
    return pid != 0 && dt_proc_stat_read(&stat, pid) && stat.state == 'T' ? pid : 0;
}

static dt_status start(const char *run, const dt_detach_place *place, dt_error *err)
{
    const char *const argv[] = {"dtrun", "supervise", run, NULL};
    dt_error problem = DT_ERROR_INIT;
    const char *folder, *log;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, run, NULL, &arena, err));
    DT_TRY(dt_run_check_owner(run, folder, err));
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    DT_TRY(dt_run_path(&log, run, "supervisor.log", &arena, err));
    st = dt_detach_start(argv, log, place, READY_SECONDS, &problem);
    if (st == DT_ERR_BUSY && dt_outdated_end(run, folder)) {
        dt_error_clear(&problem);
        st = dt_detach_start(argv, log, place, READY_SECONDS, &problem);
    }
    if (st == DT_ERR_BUSY || (st != DT_OK && dt_supervisor_is_running(run)))
        st = DT_OK; /* somebody was quicker, this machine is slow, or ours died and has an heir */
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
    return start(run, NULL, err);
}

/* The folder that XDG_STATE_HOME is, or would be. */
static dt_status find_state_home(const char **out, dt_arena *arena, dt_error *err)
{
    const char *state;
    dt_status st = dt_dir_make(&state, DT_DIR_STATE, arena, err);

    if (st != DT_OK)
        return st;
    *out = dt_arena_printf(arena, "%.*s", (int)(strrchr(state, '/') - state), state);
    return *out != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
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
    DT_TRY(find_state_home(&state_home, &arena, err));
    if (dt_stop_mark_covers(folder, 0)) /* all that one could do is to write the end */
        DT_TRY(dt_run_check_room(&arena, err));
    st = dt_launch_env_for_revival(&env, folder, state_home, deliberate, &arena, &problem);
    if (st == DT_ERR_NOT_FOUND) { /* a dtrun before this one launched it */
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

    if (dt_run_state_is_terminal(run->state))
        return DT_OK;
    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, run->id, NULL, &arena, err));
    st = dt_socket_connect(&fd, folder, "control.sock", NULL);
    if (st == DT_OK) {
        close(fd);
        goto out;
    }
    st = dt_supervisor_revive(run->id, false, &problem);
    if (st == DT_ERR_USAGE)
        st = DT_OK; /* it has ended since the row was read */
    else if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    dt_arena_release(&arena);
    return st;
}
