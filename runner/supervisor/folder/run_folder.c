#include "runner/supervisor/folder/run_folder.h"

#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"

dt_status dt_run_path(const char **out, const char *run, const char *below, dt_arena *arena,
                      dt_error *err)
{
    const char *state;
    dt_status st;

    *out = NULL;
    /* Ids come from the store; one that contains a path is never looked up on the disk. */
    if (run[0] == '\0' || run[0] == '.' || strchr(run, '/') != NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' is not the id of a run", run);
    st = dt_dir_path(&state, DT_DIR_STATE, arena, err);
    if (st != DT_OK)
        return st;
    *out = below == NULL ? dt_arena_printf(arena, "%s/runs/%s", state, run)
                         : dt_arena_printf(arena, "%s/runs/%s/%s", state, run, below);
    return DT_OK;
}

/* A supervisor of another user would use that user's keys, and leave files that the owner cannot
 * write. */
dt_status dt_run_check_owner(const char *run, const char *folder, dt_error *err)
{
    struct stat info;
    struct passwd *owner;

    if (lstat(folder, &info) != 0 || info.st_uid == geteuid())
        return DT_OK; /* the caller reports problems when it uses the folder */
    owner = getpwuid(info.st_uid);
    if (owner != NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "run '%s' belongs to user %s, who alone can supervise it", run,
                       owner->pw_name);
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "run '%s' belongs to the user with id %lld, who alone can supervise it", run,
                   (long long)info.st_uid);
}

#define WRITE_BYTES 65536

dt_status dt_run_check_room(dt_arena *arena, dt_error *err)
{
    static const char nothing[WRITE_BYTES];
    const char *state, *path;
    dt_status st;

    DT_TRY(dt_dir_make(&state, DT_DIR_STATE, arena, err));
    path = dt_arena_printf(arena, "%s/.room.%d", state, (int)getpid());
    st = dt_file_write_atomic(path, nothing, sizeof(nothing), 0600, err);
    (void)dt_file_remove_tree(path, NULL);
out:
    return st;
}
